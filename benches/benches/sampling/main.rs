//! What sampling costs: the same loop with and without it, side by side.
//!
//! One operation is a reserve and a commit of 32 bytes, or, in the second table, an allocation
//! and a free of 64, or, in the third, one of 48 in the system's allocator. The first contender has no
//! sampler. The last tables are of draws and of estimates alone.
//! (design/sampling.md `.req.cost`.)

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use benches::compare::{Contender, compare, print};
use benches::region::ManualRegion;
use tripoint::author::SymmetricFence;
use tripoint::contract::ContractAllocator;
use tripoint::points::Control;
use tripoint::telemetry::{
    Confidence, Estimate, GlobalSampler, Mean, PointSampler, Sample, SampledAllocator, SampledObject,
    SampledStore, Sampling, Stream, Trials, Window,
};
use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions, BufferKind, Mfs, MfsOptions, Store, UnitOf};

/// Operations of a contender in one round.
const OPERATIONS: usize = 1 << 20;
/// The bytes of a region: all objects of a round.
const REGION: usize = OPERATIONS * 32;

type Region<'a> = ManualRegion<&'a ArenaVm>;

fn switched(mean: Option<Mean>) -> Sampling {
    let sampling = Sampling::off(42);
    sampling.set_mean(mean);
    sampling
}

/// A loop of objects of 32 bytes at a point with this control.
fn points<C: Control>(region: &Region<'_>, control: impl Fn() -> C) -> impl FnMut() -> Duration {
    move || {
        let mut point = AllocationPoint::create_with(region, BufferKind::Mutator, control()).unwrap();
        // The fill and the first touch of the memory are not measured: the region was used before.
        let start = Instant::now();
        fill(&mut point, OPERATIONS);
        let time = start.elapsed();
        drop(point);
        // SAFETY: nothing uses the objects any more, and the only point is dropped.
        unsafe { region.reset() };
        time
    }
}

#[inline(never)]
fn fill<C: Control>(point: &mut AllocationPoint<'_, Region<'_>, C>, count: usize) {
    for round in 0..count as u64 {
        let reservation = point.reserve(Layout::new::<[u64; 4]>()).unwrap();
        // SAFETY: reserved just now, with the layout of the value.
        unsafe { reservation.as_ptr().cast().write([round; 4]) };
        // SAFETY: written just now.
        black_box(unsafe { reservation.commit() }.unwrap());
    }
}

/// A loop of pairs of 64 bytes in a store.
fn pairs<S: Store>(store: S) -> impl FnMut() -> Duration {
    move || {
        let layout = black_box(Layout::new::<[u64; 8]>());
        let start = Instant::now();
        for _ in 0..OPERATIONS {
            let object = black_box(store.alloc(layout).unwrap());
            // SAFETY: allocated just now with this layout, and not used any more.
            unsafe { store.free(object, layout) };
        }
        start.elapsed()
    }
}

/// The switch of the thread, which follows it before each round.
static GLOBAL: Sampling = Sampling::off(42);
static SAMPLER: GlobalSampler = GlobalSampler::new(&GLOBAL, report);

/// A loop of pairs of 48 bytes in a global allocator, with this mean.
fn global<A: GlobalAlloc>(allocator: A, mean: Option<Mean>, follow: fn(&A)) -> impl FnMut() -> Duration {
    move || {
        GLOBAL.set_mean(mean);
        follow(&allocator);
        let layout = black_box(Layout::new::<[u64; 6]>());
        let start = Instant::now();
        for _ in 0..OPERATIONS {
            // SAFETY: allocated and freed once, with one layout that is not empty.
            unsafe {
                let object = black_box(allocator.alloc(layout));
                allocator.dealloc(object, layout);
            }
        }
        start.elapsed()
    }
}

fn measure_global(rounds: usize) {
    let usual = Mean::new(100 << 10);
    let sampled = |mean| global(SampledAllocator::system(SAMPLER), mean, SampledAllocator::follow_switch);
    let both = |mean| {
        global(ContractAllocator::with_sampler(System, SAMPLER), mean, ContractAllocator::follow_switch)
    };
    let mut contenders = [
        Contender::new("System", global(System, None, |_| ())),
        Contender::new("sampled, off", sampled(None)),
        Contender::new("one in 100 KiB", sampled(usual)),
        Contender::new("contract", global(ContractAllocator::system(), None, |_| ())),
        Contender::new("contract, off", both(None)),
        Contender::new("contract, 100 KiB", both(usual)),
    ];
    print("48 bytes in a global allocator and back", &compare(&mut contenders, rounds, OPERATIONS));
}

fn report(sampled: SampledObject) {
    black_box(sampled);
}

fn measure(rounds: usize) {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let means = [None, Mean::new(512 << 10), Mean::new(100 << 10)];
    let [off, rare, usual] = means.map(switched);
    let region = Region::create(&arena, 2 * REGION, SymmetricFence).unwrap();
    let sampled = |sampling| points(&region, move || PointSampler::new(sampling, report));
    let mut contenders = [
        Contender::new("no sampler", points(&region, || ())),
        Contender::new("sampler, off", sampled(&off)),
        Contender::new("one in 512 KiB", sampled(&rare)),
        Contender::new("one in 100 KiB", sampled(&usual)),
    ];
    print("32 bytes at an allocation point", &compare(&mut contenders, rounds, OPERATIONS));

    let pool = Mfs::create(&arena, UnitOf::<[u64; 8]>::new(), MfsOptions::default()).unwrap();
    let [plain, cached] = [(); 2].map(|()| pool.cache());
    let mut contenders = [
        Contender::new("MfsCache", pairs(plain)),
        Contender::new("sampler, off", pairs(SampledStore::new(&cached, &off, report))),
        Contender::new("one in 100 KiB", pairs(SampledStore::new(&cached, &usual, report))),
        Contender::new("shared, off", pairs(SampledStore::shared(&cached, &off, report))),
    ];
    print("64 bytes in a cache and back", &compare(&mut contenders, rounds, OPERATIONS));
}

/// That many times the same.
fn repeated(operations: usize, mut work: impl FnMut()) -> impl FnMut() -> Duration {
    move || {
        let start = Instant::now();
        (0..operations).for_each(|_| work());
        start.elapsed()
    }
}

/// What a draw costs by itself, and what is computed of samples afterwards.
fn measure_parts(rounds: usize) {
    // Of 2^40 bytes one in two is drawn.
    let mean = Mean::new(2).unwrap();
    let mut trials = Trials::new(Stream::new(42, 0), mean);
    let draw = repeated(OPERATIONS, move || {
        black_box(trials.allocate(1 << 40));
    });
    print("a draw and its sample", &compare(&mut [Contender::new("draw", draw)], rounds, OPERATIONS));

    let mut estimate = Estimate::new(Mean::default());
    let sample = Sample::new(64, 32, Mean::default()).unwrap();
    (0..1000).for_each(|_| estimate.add(&sample));
    let limits = move || {
        black_box(black_box(estimate).limits(Confidence::PERCENT_95, Window::ANY)).unwrap();
    };
    let interval = move || {
        black_box(black_box(estimate).interval(Confidence::PERCENT_95));
    };
    let operations = 64;
    let mut contenders = [
        Contender::new("limits", repeated(operations, limits)),
        Contender::new("interval", repeated(operations, interval)),
    ];
    print("limits and interval of 1,000 samples", &compare(&mut contenders, rounds, operations));
}

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if is_quick { 1 } else { 51 };
    measure(rounds);
    measure_global(rounds);
    measure_parts(rounds);
}
