//! `Mfs::trim`: extents whose units are all free go back to the arena (design/pool-mfs.md `.mfs.trim`).

use core::alloc::Layout;
use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use crate::common::{GRAIN, Oracle, SEAL, TestArena, arena, cases, effort, layout, memory, pick};
use proptest::prelude::*;
use tripoint_core::internal::{AtomicBool, Ordering};
use tripoint_core::{Arena, Check, CheckLevel, ClientArena, Event, EventHook, PoolClass, Store};
use tripoint_pools::{Mfs, MfsOptions, UnitLayout, UnitOf};

/// Larger under Miri, which takes long for many objects.
type Line = [u64; if cfg!(miri) { 64 } else { 8 } - SEAL / 8];
const LINE: Layout = Layout::new::<Line>();

/// The units of a grain.
const LINES: usize = GRAIN / (size_of::<Line>() + SEAL);

/// The extents of a pool, as it reports them: base and size. An extent is returned as a whole, or not at all.
#[derive(Default)]
struct Extents(RefCell<Vec<(usize, usize)>>);

// SAFETY: each test that uses this has one thread.
unsafe impl Sync for Extents {}

impl EventHook for Extents {
    fn event(&self, event: Event) {
        match event {
            Event::Extend { base, size, .. } => self.0.borrow_mut().push((base.get(), size)),
            Event::Retract { base, size, .. } => {
                let mut extents = self.0.borrow_mut();
                let index = extents.iter().position(|&extent| extent == (base.get(), size));
                extents.swap_remove(index.expect("what is returned is an extent"));
            }
            _ => {}
        }
    }
}

impl Extents {
    /// The bytes in extents in which something of the oracle lies.
    fn in_use(&self, oracle: &Oracle) -> usize {
        let live = [oracle.addresses(true), oracle.addresses(false)].concat();
        let is_used = |&&(base, size): &&(usize, usize)| {
            oracle.live().covers(base) || live.iter().any(|addr| (base..base + size).contains(addr))
        };
        self.0.borrow().iter().filter(is_used).map(|(_, size)| size).sum()
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc,
    Free(usize),
    Fill(usize),
    Empty(usize),
    Trim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => Just(Step::Alloc),
        8 => any::<usize>().prop_map(Step::Free),
        2 => (0..4_usize).prop_map(Step::Fill),
        2 => any::<usize>().prop_map(Step::Empty),
        1 => Just(Step::Trim),
    ];
    prop::collection::vec(step, 1..effort(150) as usize)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(96), failure_persistence: None, ..ProptestConfig::default() })]

    /// Units that divide a grain and units that do not, extents that touch, fills that span them, and runs that were
    /// never used.
    #[test]
    fn all_whole_extents_go_back_and_no_other(
        steps in steps(),
        (size, align_log) in (prop_oneof![1..3000_usize, Just(GRAIN / 8), Just(GRAIN), 1..3 * GRAIN], 0..8_u32),
        (extend_by, fill_size) in (1..4 * GRAIN, 1..4 * GRAIN),
    ) {
        let mut memory = memory(48);
        let (client, extents) = (arena(&mut memory), Extents::default());
        let arena = TestArena::telling(&client, &extents);
        let unit = layout(size, 1 << align_log);
        let pool = Mfs::create(&arena, UnitLayout::new(unit).unwrap(), MfsOptions { extend_by, fill_size }).unwrap();
        let mut oracle = Oracle::default();
        for step in steps.into_iter().chain([Step::Trim]) {
            match step {
                Step::Alloc => _ = oracle.alloc(&pool, unit),
                Step::Free(which) => _ = pick(&oracle.addresses(true), which).map(|addr| oracle.free(&pool, addr)),
                Step::Fill(objects) => _ = oracle.fill(&pool, unit, objects),
                Step::Empty(which) => _ = pick(&oracle.addresses(false), which).map(|addr| oracle.empty(&pool, addr)),
                Step::Trim => {
                    let (total, in_use) = (pool.sizes().total, extents.in_use(&oracle));
                    prop_assert_eq!(pool.trim(), total - in_use);
                    prop_assert_eq!((pool.sizes().total, pool.trim()), (in_use, 0));
                }
            }
            oracle.agree(&pool);
        }
        oracle.clear(&pool);
        pool.trim();
        prop_assert_eq!(pool.sizes().total, 0);
        client.check(CheckLevel::Deep).unwrap();
    }
}

fn lines<'a>(arena: &'a ClientArena<'a>, extend_by: usize) -> Mfs<&'a ClientArena<'a>, UnitOf<Line>> {
    Mfs::create(arena, UnitOf::new(), MfsOptions { extend_by, ..MfsOptions::default() }).unwrap()
}

#[test]
fn an_extent_that_was_hardly_used_goes_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = lines(&arena, 16 * GRAIN);
    assert_eq!(pool.trim(), 0, "it has none");
    let mut oracle = Oracle::default();
    oracle.alloc(&pool, LINE).unwrap();
    assert_eq!(pool.trim(), 0, "an object is live");
    oracle.clear(&pool);
    assert_eq!(pool.trim(), 16 * GRAIN);
    oracle.alloc(&pool, LINE).unwrap();
    oracle.agree(&pool);
}

/// The lowest first, so that they touch and the highest extents become free.
#[test]
fn what_stays_is_in_the_order_of_addresses() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = lines(&arena, GRAIN);
    let objects: Vec<_> = (0..4 * LINES).map(|_| pool.alloc(LINE).unwrap()).collect();
    // The last of each grain stays.
    let step = if cfg!(feature = "hardening") { 1 } else { 7 };
    for index in (0..objects.len())
        .map(|index| index * step % objects.len())
        .filter(|index| index % LINES != LINES - 1)
    {
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(objects[index], LINE) };
    }
    assert_eq!(pool.trim(), 0);
    let again: Vec<_> = (0..4 * (LINES - 1)).map(|_| pool.alloc(LINE).unwrap()).collect();
    assert!(again.is_sorted());
}

/// Units that are in a cache or on their way back are not free.
#[test]
fn caches_and_returns_keep_their_extents_until_they_are_flushed() {
    let mut memory = memory(48);
    let arena = arena(&mut memory);
    let spare = arena.sizes().spare;
    let pool = lines(&arena, 2 * GRAIN);
    let (cache, mut returns) = (pool.cache(), pool.returns());
    let objects: Vec<_> = (0..32 * LINES).map(|_| cache.alloc(LINE).unwrap()).collect();
    for (index, object) in objects.into_iter().enumerate() {
        if index % 2 == 0 {
            // SAFETY: allocated from this cache above, with this layout; freed once, and not used any more.
            unsafe { cache.free(object, LINE) };
        } else {
            // SAFETY: allocated from a cache of this pool above, with this layout; freed once, and not used any more.
            unsafe { returns.free(object, LINE) };
        }
    }
    assert_eq!((pool.trim(), pool.sizes().total), (0, 32 * GRAIN), "each extent has units of the cache");
    cache.flush();
    returns.flush();
    assert_eq!((pool.trim(), pool.sizes().total), (32 * GRAIN, 0));
    assert_eq!(arena.sizes().spare, spare, "and the arena has it");
}

#[test]
fn a_frozen_arena_loses_nothing_by_what_goes_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = lines(&arena, 2 * GRAIN);
    let mut oracle = Oracle::default();
    for round in 0..4 {
        (0..6 * LINES).for_each(|_| _ = oracle.alloc(&pool, LINE).unwrap());
        if round == 0 {
            arena.freeze();
        }
        oracle.clear(&pool);
        assert_eq!((pool.trim(), pool.sizes().total), (6 * GRAIN, 0));
    }
}

/// While memory is returned, lets a second thread go, which needs an extent.
#[derive(Default)]
struct LetsGo {
    is_returning: AtomicBool,
    has_grown: AtomicBool,
}

impl EventHook for LetsGo {
    fn event(&self, event: Event) {
        match event {
            Event::Retract { .. } => {
                self.is_returning.store(true, Ordering::Release);
                (0..if cfg!(miri) { 20 } else { 1000 }).for_each(|_| std::thread::yield_now());
                assert!(
                    !self.has_grown.load(Ordering::Acquire),
                    "the pool grows while it looks for its extents"
                );
            }
            Event::Extend { .. } => {
                self.has_grown.store(self.is_returning.load(Ordering::Acquire), Ordering::Release);
            }
            _ => {}
        }
    }
}

/// (design/pool-mfs.md `.mfs.trim.lock`)
#[test]
fn a_pool_does_not_grow_while_it_is_trimmed_by_another_thread() {
    let mut memory = memory(8);
    let (client, hook) = (arena(&mut memory), LetsGo::default());
    let arena = TestArena::telling(&client, &hook);
    let options = MfsOptions { extend_by: GRAIN, ..MfsOptions::default() };
    let pool = Mfs::create(&arena, UnitOf::<Line>::new(), options).unwrap();
    let object = pool.alloc(LINE).unwrap();
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(object, LINE) };
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            tripoint_oracle::wait_until(|| hook.is_returning.load(Ordering::Acquire));
            pool.alloc(LINE).map(|_| ())
        });
        assert_eq!(pool.trim(), GRAIN);
        second.join().unwrap().unwrap();
    });
    assert!(hook.has_grown.load(Ordering::Relaxed), "the second thread needed no extent");
    assert_eq!(pool.sizes().total, GRAIN);
}

/// Unwinds at what is returned, if it is asked to.
#[derive(Default)]
struct Unwinds(AtomicBool);

impl EventHook for Unwinds {
    fn event(&self, event: Event) {
        if let Event::Retract { .. } = event
            && self.0.swap(false, Ordering::Relaxed)
        {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

/// The extents that were not yet returned are the pool's again.
#[test]
fn a_hook_that_unwinds_takes_nothing_away() {
    let mut memory = memory(24);
    let (client, hook) = (arena(&mut memory), Unwinds::default());
    let arena = TestArena::telling(&client, &hook);
    let options = MfsOptions { extend_by: 2 * GRAIN, ..MfsOptions::default() };
    let pool = Mfs::create(&arena, UnitOf::<Line>::new(), options).unwrap();
    let mut oracle = Oracle::default();
    (0..8 * LINES).for_each(|_| _ = oracle.alloc(&pool, LINE).unwrap());
    oracle.clear(&pool);
    hook.0.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| pool.trim())).is_err());
    let sizes = oracle.agree(&pool);
    assert_eq!((sizes.free, sizes.total), (6 * GRAIN, 6 * GRAIN), "one was returned all the same");
    assert_eq!(pool.trim(), 6 * GRAIN);
    client.check(CheckLevel::Deep).unwrap();
}
