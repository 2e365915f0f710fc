//! Sampling in front of an allocator, as a program's global allocator is sampled.
//! (design/sampling.md `.global`.)

#[path = "../child/mod.rs"]
mod child;
mod forks;
mod switch;
mod threads;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, RefCell};
use core::ptr::null_mut;
use std::alloc::System;
use std::thread;

use proptest::prelude::*;
use tripoint_core::Addr;
use tripoint_oracle::cases;
use tripoint_oracle::forever;
use tripoint_telemetry::{
    GlobalSampler, Mean, ObjectKind, Sample, SampledAllocator, SampledObject, Sampling, Stream, Trials,
};

const SEED: u64 = 0x610b;

/// A mebibyte: a thread looks at the switch after at most as many bytes.
const LOOK: usize = 1 << 20;

thread_local! {
    static SAMPLED: RefCell<Vec<SampledObject>> = const { RefCell::new(Vec::new()) };
    static FAILS: Cell<bool> = const { Cell::new(false) };
}

fn keep(sampled: SampledObject) {
    SAMPLED.with_borrow_mut(|all| all.push(sampled));
}

/// What was sampled on this thread since the last call.
fn sampled() -> Vec<SampledObject> {
    SAMPLED.take()
}

/// The system's allocator, which fails when the thread wants it to.
#[derive(Clone, Copy, Debug)]
struct Failing;

// SAFETY: every call is passed on to the system's allocator as it came, or fails.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches for the layout.
        if FAILS.get() { null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller vouches for object and layout.
        unsafe { System.dealloc(object, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches for the layout.
        if FAILS.get() { null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches for object, layout and size.
        if FAILS.get() { null_mut() } else { unsafe { System.realloc(object, layout, size) } }
    }
}

fn switch(mean: Option<Mean>) -> &'static Sampling {
    let sampling = forever(Sampling::off(SEED));
    sampling.set_mean(mean);
    sampling
}

fn before_failing(sampling: &'static Sampling) -> SampledAllocator<Failing> {
    SampledAllocator::new(Failing, GlobalSampler::new(sampling, keep))
}

/// Runs `work` on a thread that has allocated nothing yet.
fn on_new_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(work).join()).unwrap()
}

/// One call of an allocator, with the size that it asks for.
#[derive(Clone, Copy, Debug)]
enum Call {
    Alloc(usize),
    AllocZeroed(usize),
    /// Of an object of 24 bytes.
    Realloc(usize),
    Failing(usize),
    FailingRealloc(usize),
}

impl Call {
    /// The sizes whose trials are carried out, and whether their objects exist.
    fn trials(self) -> Vec<(usize, bool)> {
        match self {
            Self::Alloc(size) | Self::AllocZeroed(size) => vec![(size, true)],
            Self::Realloc(size) => vec![(24, true), (size, true)],
            Self::Failing(size) => vec![(size, false)],
            Self::FailingRealloc(size) => vec![(24, true), (size, false)],
        }
    }

    /// Makes the call, frees what it allocated, and returns the addresses of the objects.
    fn make(self, allocator: &impl GlobalAlloc) -> Vec<Addr> {
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        // SAFETY: every layout has a size, every object is freed once, with the layout that it has
        // by then, and none is used otherwise.
        unsafe {
            match self {
                Self::Alloc(size) | Self::AllocZeroed(size) => {
                    let is_zeroed = matches!(self, Self::AllocZeroed(_));
                    let layout = layout(size);
                    let object =
                        if is_zeroed { allocator.alloc_zeroed(layout) } else { allocator.alloc(layout) };
                    // Miri takes its time for each byte.
                    let read = if cfg!(miri) { size.min(64) } else { size };
                    assert!(
                        !is_zeroed || core::slice::from_raw_parts(object, read).iter().all(|byte| *byte == 0)
                    );
                    allocator.dealloc(object, layout);
                    vec![Addr::of(object)]
                }
                Self::Realloc(size) => {
                    let old = allocator.alloc(layout(24));
                    let addresses = vec![Addr::of(old)];
                    let object = allocator.realloc(old, layout(24), size);
                    allocator.dealloc(object, layout(size));
                    [addresses, vec![Addr::of(object)]].concat()
                }
                Self::Failing(size) => {
                    FAILS.set(true);
                    assert!(allocator.alloc(layout(size)).is_null());
                    FAILS.set(false);
                    vec![]
                }
                Self::FailingRealloc(size) => {
                    let old = allocator.alloc(layout(24));
                    FAILS.set(true);
                    assert!(allocator.realloc(old, layout(24), size).is_null());
                    FAILS.set(false);
                    allocator.dealloc(old, layout(24));
                    vec![Addr::of(old)]
                }
            }
        }
    }
}

fn calls(sizes: impl Strategy<Value = usize> + Clone) -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        6 => sizes.clone().prop_map(Call::Alloc),
        1 => sizes.clone().prop_map(Call::AllocZeroed),
        2 => sizes.clone().prop_map(Call::Realloc),
        1 => sizes.clone().prop_map(Call::Failing),
        1 => sizes.prop_map(Call::FailingRealloc),
    ];
    prop::collection::vec(call, 0..if cfg!(miri) { 20 } else { 200 })
}

/// The samples of the first thread, if `trials` carries out those of one object after another.
fn expected(calls: &[Call], mut trials: impl FnMut(usize) -> Option<Sample>) -> Vec<Sample> {
    let tried = calls.iter().flat_map(|call| call.trials());
    tried.filter_map(|(size, exists)| trials(size).filter(|_| exists)).collect()
}

/// What is sampled if a new thread makes these calls.
fn found(mean: Mean, calls: &[Call]) -> Vec<Sample> {
    on_new_thread(|| {
        let allocator = before_failing(switch(Some(mean)));
        let objects: Vec<_> = calls.iter().flat_map(|call| call.make(&allocator)).collect();
        let sampled = sampled();
        // Samples name their objects, in order.
        let mut left = objects.iter();
        assert!(sampled.iter().all(|one| left.any(|object| *object == one.object)));
        sampled.iter().map(|one| one.sample).collect()
    })
}

/// Trials one by one: as many failures as each draw says, then a success.
fn byte_by_byte(mean: Mean) -> impl FnMut(usize) -> Option<Sample> {
    let mut trials = Trials::new(Stream::new(SEED, 0), mean);
    // An endless object is sampled at its first byte drawn: that shows each draw.
    let mut draw = move || trials.allocate(u64::MAX).unwrap().offset();
    let mut failures_left = draw();
    move |size| {
        let succeeds = |_: &u64| {
            let is_drawn = failures_left == 0;
            failures_left = if is_drawn { draw() } else { failures_left - 1 };
            is_drawn
        };
        Sample::new(size as u64, (0..size as u64).find(succeeds)?, mean)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(128), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/sampling.md `.req.trials`)
    #[test]
    fn the_objects_sampled_are_those_that_trials_byte_by_byte_pick(
        mean in prop_oneof![1u32..100, 100u32..20_000],
        calls in calls(prop_oneof![8 => 1usize..200, 2 => 200usize..9000]),
    ) {
        let mean = Mean::new(mean).unwrap();
        prop_assert_eq!(found(mean, &calls), expected(&calls, byte_by_byte(mean)));
    }

    /// A draw is carried out in steps of 1 MiB, which change nothing about it.
    #[test]
    fn draws_that_are_longer_than_a_step_are_carried_on(
        mean in 100_000u32..10_000_000,
        calls in calls(prop_oneof![1usize..200, 200usize..100_000, LOOK - 2..LOOK + 2, 1usize..3 * LOOK]),
    ) {
        let mean = Mean::new(mean).unwrap();
        let mut trials = Trials::new(Stream::new(SEED, 0), mean);
        let expected = expected(&calls, |size| trials.allocate(size as u64));
        prop_assert_eq!(found(mean, &calls), expected);
    }
}

#[test]
fn what_is_allocated_for_a_sample_is_not_sampled() {
    static SAMPLING: Sampling = Sampling::off(SEED);
    static ALLOCATOR: SampledAllocator =
        SampledAllocator::system(GlobalSampler::new(&SAMPLING, allocate_more));

    fn allocate_more(sampled: SampledObject) {
        // More than a step, and a switch that would begin a new one.
        Call::Alloc(3 * LOOK).make(&ALLOCATOR);
        SAMPLING.set_mean(Mean::new(2));
        ALLOCATOR.follow_switch();
        Call::Realloc(100).make(&ALLOCATOR);
        SAMPLING.set_mean(Some(Mean::EVERY_BYTE));
        keep(sampled);
    }

    on_new_thread(|| {
        SAMPLING.set_mean(Some(Mean::EVERY_BYTE));
        for size in [8, 5000] {
            let object = Call::Alloc(size).make(&ALLOCATOR)[0];
            let sample = Sample::new(size as u64, 0, Mean::EVERY_BYTE).unwrap();
            assert_eq!(sampled(), [SampledObject::new(ObjectKind::Global, object, sample)]);
        }
    });
}

/// Layouts without bytes are a misuse of allocators; nothing is sampled, and nothing breaks.
#[test]
fn objects_of_no_bytes_are_no_samples() {
    /// Returns the same address always, and no memory.
    struct Nothing;

    // SAFETY: what it returns has no bytes, which is all that it is asked for.
    unsafe impl GlobalAlloc for Nothing {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            assert_eq!(layout.size(), 0);
            core::ptr::dangling_mut()
        }

        unsafe fn dealloc(&self, _object: *mut u8, _layout: Layout) {}
    }

    on_new_thread(|| {
        let sampler = GlobalSampler::new(switch(Some(Mean::EVERY_BYTE)), keep);
        let allocator = SampledAllocator::new(Nothing, sampler);
        let layout = Layout::from_size_align(0, 1).unwrap();
        for _ in 0..3 {
            // SAFETY: this allocator takes layouts without a size.
            unsafe { allocator.dealloc(allocator.alloc(layout), layout) };
        }
        assert_eq!(sampled(), []);
        assert_eq!(Call::Alloc(1).make(&SampledAllocator::new(System, sampler)).len(), sampled().len());
    });
}
