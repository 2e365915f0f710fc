//! The contract's wrapper of a global allocator samples the objects that telemetry's own does, and is
//! the contract's as ever (design/sampling.md `.global.contract`).

use core::alloc::{GlobalAlloc, Layout};
use core::cell::RefCell;
use std::alloc::System;
use std::thread;

use proptest::prelude::*;
use tripoint_contract::{Contract, ContractAllocator, HotThread, Policies, Policy, ViolationClass, current};
use tripoint_oracle::cases;
use tripoint_telemetry::{
    GlobalSampler, Mean, Sample, SampledAllocator, SampledObject, Sampling, Stream, Trials,
};

const SEED: u64 = 0x610b;

/// A thread looks at the switch after at most as many bytes.
const LOOK: usize = 1 << 20;

thread_local! {
    static SAMPLED: RefCell<Vec<SampledObject>> = const { RefCell::new(Vec::new()) };
}

fn keep(sampled: SampledObject) {
    SAMPLED.with_borrow_mut(|all| all.push(sampled));
}

fn samples() -> Vec<Sample> {
    SAMPLED.take().into_iter().map(|sampled| sampled.sample).collect()
}

fn sampler(mean: Mean) -> (GlobalSampler, &'static Sampling) {
    let sampling = Box::leak(Box::new(Sampling::off(SEED)));
    sampling.set_mean(Some(mean));
    (GlobalSampler::new(sampling, keep), sampling)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(usize),
    AllocZeroed(usize),
    /// Of an object of this size, to another.
    Realloc(usize, usize),
    /// The thread becomes active, or is so no more; only the contract knows.
    Watch(bool),
}

impl Step {
    fn sizes(self) -> Vec<usize> {
        match self {
            Self::Alloc(size) | Self::AllocZeroed(size) => vec![size],
            Self::Realloc(old, new) => vec![old, new],
            Self::Watch(_) => vec![],
        }
    }

    fn take(self, allocator: &impl GlobalAlloc) {
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        // SAFETY: every layout has a size, every object is freed once, with the layout that it has
        // by then, and none is used otherwise.
        unsafe {
            match self {
                Self::Alloc(size) => allocator.dealloc(allocator.alloc(layout(size)), layout(size)),
                Self::AllocZeroed(size) => {
                    allocator.dealloc(allocator.alloc_zeroed(layout(size)), layout(size));
                }
                Self::Realloc(old, new) => {
                    let object = allocator.realloc(allocator.alloc(layout(old)), layout(old), new);
                    allocator.dealloc(object, layout(new));
                }
                Self::Watch(on) => current::watch(on),
            }
        }
    }
}

/// What is sampled if a thread that has allocated nothing takes these steps.
fn sampled(allocator: &(impl GlobalAlloc + Sync), steps: &[Step]) -> Vec<Sample> {
    let work = || {
        steps.iter().for_each(|step| step.take(allocator));
        current::watch(false);
        samples()
    };
    thread::scope(|scope| scope.spawn(work).join()).unwrap()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = || prop_oneof![8 => 1usize..200, 2 => 200usize..9000, 1 => 1usize..3 * LOOK];
    let step = prop_oneof![
        6 => size().prop_map(Step::Alloc),
        1 => size().prop_map(Step::AllocZeroed),
        2 => (size(), size()).prop_map(|(old, new)| Step::Realloc(old, new)),
        1 => any::<bool>().prop_map(Step::Watch),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(128), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_wrappers_sample_the_objects_that_trials_pick(
        mean in prop_oneof![1u32..100, 100u32..20_000, 20_000u32..10_000_000],
        steps in steps(),
    ) {
        let mean = Mean::new(mean).unwrap();
        let mut trials = Trials::new(Stream::new(SEED, 0), mean);
        let sizes = steps.iter().flat_map(|step| step.sizes());
        let expected: Vec<_> = sizes.filter_map(|size| trials.allocate(size as u64)).collect();
        prop_assert_eq!(sampled(&SampledAllocator::system(sampler(mean).0), &steps), expected.clone());
        prop_assert_eq!(sampled(&ContractAllocator::with_sampler(System, sampler(mean).0), &steps), expected);
    }
}

/// The contract of a thread that is registered: it is charged with each call, and sampled as if it
/// were not.
#[test]
fn a_registered_thread_is_charged_and_sampled() {
    static CONTRACT: Contract = Contract::new();
    const OBJECTS: usize = 1000;
    let mean = Mean::new(1000).unwrap();
    let (sampler, sampling) = sampler(mean);
    let allocator = ContractAllocator::with_sampler(System, sampler);
    let allocate = move |count| (0..count).for_each(|number| Step::Alloc(1 + number % 90).take(&allocator));
    CONTRACT.begin_init().unwrap();
    thread::spawn(move || {
        allocate(OBJECTS);
        let thread = HotThread { policies: Policies::all(Policy::Quarantine), ..HotThread::new("sampled") };
        let guard = CONTRACT.register(thread).unwrap();
        let tally = || guard.slot().tally(ViolationClass::Alloc).count;
        let before = tally();
        allocate(OBJECTS);
        assert_eq!(tally(), before + OBJECTS, "in the warm-up");
        guard.arm();
        allocate(OBJECTS);
        assert_eq!(tally(), before + 2 * OBJECTS, "armed");
        guard.check();
        assert_eq!(guard.slot().armed_tally(ViolationClass::Alloc).count, OBJECTS);
        assert!(guard.slot().alarms() >= 2, "one for what is allocated, one for what is freed");
        // An armed thread follows the switch like any other.
        let found = samples();
        sampling.set_mean(None);
        allocator.follow_switch();
        allocate(OBJECTS);
        assert_eq!(samples(), []);
        sampling.set_mean(Some(Mean::EVERY_BYTE));
        allocator.follow_switch();
        drop(guard);
        allocate(OBJECTS);
        assert_eq!(samples().len(), OBJECTS, "also when it is registered no more");

        let mut trials = Trials::new(Stream::new(SEED, 0), mean);
        let sizes = (0..3).flat_map(|_| (0..OBJECTS).map(|number| 1 + number % 90));
        let expected: Vec<_> = sizes.filter_map(|size| trials.allocate(size as u64)).collect();
        assert_eq!(found, expected);
    })
    .join()
    .unwrap();
}

/// The site of the first event is that of the code that allocates, not one within the wrapper's slow
/// path; and a sampler's report is charged too.
#[test]
fn what_a_report_allocates_is_charged_and_not_sampled() {
    static SAMPLING: Sampling = Sampling::off(SEED);
    static ALLOCATOR: ContractAllocator<System, GlobalSampler> =
        ContractAllocator::with_sampler(System, GlobalSampler::new(&SAMPLING, allocate_more));

    fn allocate_more(sampled: SampledObject) {
        // The thread becomes active in between, or is so no more.
        current::watch(sampled.sample.size() == 8);
        Step::Alloc(3 * LOOK).take(&ALLOCATOR);
        keep(sampled);
    }

    SAMPLING.set_mean(Some(Mean::EVERY_BYTE));
    let work = || {
        for size in [8, 16, 8, 8, 16] {
            let before = current::count(ViolationClass::Alloc).0;
            Step::Alloc(size).take(&ALLOCATOR);
            assert_eq!(current::count(ViolationClass::Alloc).0, before + 2);
            assert_eq!(samples(), [Sample::new(size as u64, 0, Mean::EVERY_BYTE).unwrap()]);
            let is_watched = current::watched().is_some_and(|(class, _)| class == ViolationClass::Alloc);
            assert_eq!(is_watched, size == 8);
        }
    };
    thread::scope(|scope| scope.spawn(work).join()).unwrap();
}
