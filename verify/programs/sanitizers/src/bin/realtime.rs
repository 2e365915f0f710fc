//! The fast path in a steady state, where nothing may call the allocator of the
//! program, map memory, or wait: RealtimeSanitizer ends the program if it does.
//!
//! ```text
//! realtime            the fast path, 100,000 times round
//! realtime allocates  its control: the same, with a box
//! ```
#![feature(sanitize)]

use core::alloc::Layout;
use core::hint::black_box;

use tripoint::contract::{Contract, Guard, HotThread, NoDetectors, NoReason, Phase};
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Error, Mfs, MfsCache,
    MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Prefault, Snc, SncOptions, Store, UnitOf,
};

type Order = [u64; 4];
type Arena<'a> = &'a ArenaVm;

const ROUNDS: u64 = 100_000;

static CONTRACT: Contract<NoReason, 1> = Contract::new();

/// What a hot thread works with.
#[derive(Debug)]
struct Hot<'h> {
    point: AllocationPoint<'h, Mvt<Arena<'h>>>,
    frames: AllocationPoint<'h, Snc<Arena<'h>>>,
    units: MfsCache<'h, Arena<'h>, UnitOf<Order>>,
    cache: Cache<'h, Mvff<Arena<'h>>>,
    guard: Guard<NoReason, NoDetectors>,
}

/// One round of everything that is promised to be fast.
fn work(hot: &mut Hot<'_>, round: u64) -> Result<u64, Error> {
    hot.guard.check();

    let layout = Layout::new::<Order>();
    let reservation = hot.point.reserve(layout)?;
    // SAFETY: the reservation is valid for writes of the layout.
    unsafe { reservation.as_ptr().cast::<Order>().write([round; 4]) };
    // SAFETY: the object was just written whole.
    if let Ok(object) = unsafe { reservation.commit() } {
        // SAFETY: a live object of the pool, freed once.
        unsafe { hot.point.pool().free(object, layout) };
    }

    let mut batch = hot.point.batch::<Order>(8)?;
    while batch.push([round; 4]).is_ok() {}
    let batched = batch.commit_boxed().len() as u64;

    drop(hot.units.boxed([round; 4])?);
    drop(hot.cache.boxed([round; 3])?);

    let framed: u64 = hot.frames.scope(|outer| {
        let slice = outer.slice(16, |index| round + index as u64)?;
        outer.scope(|inner| inner.alloc(slice.len() as u64).map(|length| *length))
    })?;
    Ok(batched + framed)
}

#[sanitize(realtime = "nonblocking")]
fn fast_path(hot: &mut Hot<'_>, rounds: u64) -> Result<u64, Error> {
    (0..rounds).try_fold(0, |sum, round| Ok(sum + work(hot, round)?))
}

#[sanitize(realtime = "nonblocking")]
fn fast_path_that_allocates(hot: &mut Hot<'_>, rounds: u64) -> Result<u64, Error> {
    (0..rounds).try_fold(0, |sum, round| Ok(sum + *black_box(Box::new(work(hot, round)?))))
}

fn run(allocates: bool) -> Result<(), Error> {
    let options =
        ArenaVmOptions { reserve: 256 << 20, prefault: Prefault::AtFill, ..ArenaVmOptions::default() };
    let arena = ArenaVm::create(options)?;
    let times = Mvt::create(&arena, MvtOptions::default())?;
    let frames = Snc::create(&arena, SncOptions::default())?;
    let orders = Mfs::create(&arena, UnitOf::new(), MfsOptions::default())?;
    let any = Mvff::create(&arena, MvffOptions::default())?;
    let descriptor = CacheDescriptor::new(CacheClasses::geometric(512, 8)?);
    CONTRACT.begin_init()?;
    let mut hot = Hot {
        point: AllocationPoint::create(&times)?,
        frames: AllocationPoint::create(&frames)?,
        units: orders.cache(),
        cache: Cache::create(&any, &descriptor)?,
        guard: CONTRACT.register_with(HotThread::new("hot"), NoDetectors)?,
    };
    CONTRACT.begin_warmup()?;
    fast_path_warm(&mut hot)?;
    CONTRACT.enter_steady_state(&())?;
    hot.guard.check();
    assert_eq!(hot.guard.phase(), Phase::SteadyState);
    let run = if allocates { fast_path_that_allocates } else { fast_path };
    let sum = run(&mut hot, ROUNDS)?;
    println!("realtime: {ROUNDS} rounds, sum {sum}");
    Ok(())
}

fn fast_path_warm(hot: &mut Hot<'_>) -> Result<(), Error> {
    (0..1000).try_for_each(|round| work(hot, round).map(drop))
}

fn main() {
    run(std::env::args().nth(1).is_some_and(|argument| argument == "allocates")).unwrap();
}
