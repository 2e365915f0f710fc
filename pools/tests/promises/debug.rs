//! Each fault is found, named and survived, and nothing else is reported.

mod knowing;
mod points;
mod reports;
mod unwinding;

use core::alloc::Layout;
use core::ptr::NonNull;
use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::common::{GRAIN, Oracle, SEAL, arena, cases, effort, layout, memory};
use proptest::prelude::*;
use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Addr, Arena, Block, Check, CheckError, CheckLevel, ClientArena, Describe, Error, Fill, ManualPool,
    PoolBox, PoolClass, PoolHeader, PoolSizes, Result, Store,
};
use tripoint_pools::GRANULE;
use tripoint_pools::{
    DebugOptions, DebugPool, DebugReport, Fault, Mfs, MfsOptions, Mvff, MvffOptions, Tlsf, TlsfOptions,
    UnitLayout,
};

const FENCE: usize = DebugPool::<Mvff<&tripoint_core::ClientArena<'_>>>::FENCE_SIZE;

/// With defaults; under Miri fewer objects are held back.
const OPTIONS: DebugOptions = DebugOptions { hook: None, held: if cfg!(miri) { 8 } else { 64 } };

fn debug<P: ManualPool>(pool: P) -> DebugPool<P> {
    DebugPool::create(pool, OPTIONS).unwrap()
}

fn addr_of(object: NonNull<u8>) -> Addr {
    Addr::of(object.as_ptr())
}

/// The only report of a pool.
fn only_report<P: ManualPool>(pool: &DebugPool<P>) -> DebugReport {
    let reports = pool.reports();
    assert_eq!((reports.count(), reports.iter().count()), (1, 1));
    *reports.iter().next().unwrap()
}

fn assert_clean<P: ManualPool>(pool: &DebugPool<P>) {
    assert_eq!(pool.reports().count(), 0);
    pool.inspect(&mut |report| panic!("{report}"));
    pool.check(CheckLevel::Deep).unwrap();
}

// Fills are small, because a debug pool marks each of their words.
const MVFF: MvffOptions =
    MvffOptions { extend_by: 64 << 10, fill_size: 512, spare: usize::MAX, bin_blocks: 0 };
const MFS: MfsOptions = MfsOptions { extend_by: 64 << 10, fill_size: 512 };
const TLSF: TlsfOptions =
    TlsfOptions { extend_by: 64 << 10, fill_size: 512, spare: usize::MAX, bin_blocks: 0 };

/// Runs a test for every class under a debug pool.
macro_rules! for_each_class {
    (|$pool:ident| $run:expr) => {{
        let mut memory = memory(32);
        let arena = &arena(&mut memory);
        {
            let $pool = &debug(Mvff::create(arena, MVFF).unwrap());
            $run
        }
        {
            let unit = UnitLayout::new(layout(256 - SEAL, 64)).unwrap();
            let $pool = &debug(Mfs::create(arena, unit, MFS).unwrap());
            $run
        }
        // Two classes are enough for Miri.
        if !cfg!(miri) {
            let $pool = &debug(Tlsf::create(arena, TLSF).unwrap());
            $run
        }
    }};
}

pub(crate) use for_each_class;

/// Negative control for all detectors: an orderly life is no fault.
#[test]
fn an_orderly_life_is_not_reported() {
    for_each_class!(|pool| {
        let mut oracle = Oracle::default();
        for round in 0..if cfg!(miri) { 5 } else { 200 } {
            oracle.alloc(pool, layout(round % 100, 1 << (round % 6))).unwrap();
            if round % 3 == 0 {
                oracle.point(pool, layout(40, 8), 3).unwrap();
            }
            if round % 2 == 0 {
                let addrs = oracle.addresses(true);
                oracle.free(pool, addrs[round * 7 % addrs.len()]);
            }
        }
        oracle.clear(pool);
        assert_clean(pool);
    });
}

/// (design/debug.md `.req.overrun`)
#[test]
fn a_byte_behind_an_object_is_found_at_free() {
    for_each_class!(|pool| {
        for (round, size) in [0, 1, 7, 24, 40, 100].into_iter().enumerate() {
            let layout = layout(size, 8);
            let object = pool.alloc(layout).unwrap();
            // SAFETY: within what the object takes, though not the client's.
            let byte = unsafe { object.add(size) };
            // SAFETY: a byte of the object's room, which no other reference covers.
            unsafe { byte.write(!byte.read()) };
            assert!(pool.check(CheckLevel::Deep).is_err());
            // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
            // more.
            unsafe { pool.free(object, layout) };
            assert_eq!(pool.reports().count(), round + 1);
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!((report.class, report.pool), (pool.header().class(), pool.header().id()));
            assert_eq!((report.object, report.size), (addr_of(object), size));
            let Fault::Overrun { at } = report.fault else { panic!("{report}") };
            // The seal is damaged as a whole.
            assert!(at >= addr_of(byte) || at.get() + FENCE > addr_of(byte).get(), "{report}");
        }
        assert_eq!(pool.check(CheckLevel::Shallow).unwrap_err().rule, "nothing writes behind an object");
    });
}

/// (design/debug.md `.req.check`): found before any free, and named.
#[test]
fn a_long_overrun_is_found_by_inspection() {
    for_each_class!(|pool| {
        let layout = layout(40, 8);
        let object = pool.alloc(layout).unwrap();
        let size = pool.reserve_size(layout).unwrap();
        // SAFETY: within what the object takes, though not the client's.
        unsafe { object.add(40).write_bytes(0xab, size - 40) };
        let mut found = Vec::new();
        pool.inspect(&mut |report| found.push(*report));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].object, addr_of(object));
        assert!(matches!(found[0].fault, Fault::Overrun { .. }));
        assert_eq!(pool.reports().count(), 0, "inspecting reports nothing");
        pool.check(CheckLevel::Shallow).unwrap();
        assert_eq!(pool.check(CheckLevel::Deep).unwrap_err().rule, "nothing writes behind an object");
    });
}

/// (design/debug.md `.req.double`)
#[test]
fn an_object_freed_twice_is_found() {
    for_each_class!(|pool| {
        let layout = layout(40, 8);
        let object = pool.alloc(layout).unwrap();
        let other = pool.alloc(layout).unwrap();
        // SAFETY: allocated above with this layout; a debug pool refuses the second
        // free.
        unsafe {
            pool.free(object, layout);
            assert_clean(pool);
            pool.free(object, layout);
        }
        let report = only_report(pool);
        assert_eq!((report.object, report.size, report.fault), (addr_of(object), 40, Fault::DoubleFree));
        // The pool goes on, and the object is not handed out twice.
        let again = [pool.alloc(layout).unwrap(), pool.alloc(layout).unwrap()];
        assert_ne!(again[0], again[1]);
        assert!(!again.contains(&other));
    });
}

/// Also when it is no longer held back.
#[test]
fn an_object_freed_twice_much_later_is_found() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let pool = DebugPool::create(pool, DebugOptions { held: 0, ..DebugOptions::default() }).unwrap();
    let object = pool.alloc(layout(40, 8)).unwrap();
    // SAFETY: allocated above with this layout; a debug pool refuses the second
    // free.
    unsafe {
        pool.free(object, layout(40, 8));
        pool.free(object, layout(40, 8));
    }
    assert_eq!(only_report(&pool).fault, Fault::DoubleFree);
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

/// (design/debug.md `.req.foreign`)
#[test]
fn what_is_not_the_pools_is_found() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let [mine, other] = [(); 2].map(|()| debug(Mvff::create(&arena, MvffOptions::default()).unwrap()));
    let layout = layout(100, 8);
    let mut outside = [0_u8; 128];
    let object = other.alloc(layout).unwrap();
    mine.alloc(layout).unwrap();
    for foreign in [object, NonNull::from(&mut outside).cast()] {
        let before = mine.reports().count();
        // SAFETY: a debug pool looks before it touches.
        unsafe { mine.free(foreign, layout) };
        let report = *mine.reports().iter().last().unwrap();
        assert_eq!(mine.reports().count(), before + 1);
        assert_eq!((report.object, report.fault), (addr_of(foreign), Fault::Foreign));
        assert_eq!(report.pool, mine.header().id());
    }
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { other.free(object, layout) };
    assert_clean(&other);
}

#[test]
fn a_pointer_into_an_object_is_found() {
    for_each_class!(|pool| {
        let layout = layout(100, 8);
        let object = pool.alloc(layout).unwrap();
        for offset in [1, 8, 16, 96] {
            // SAFETY: inside the object; a debug pool looks before it touches.
            unsafe { pool.free(object.add(offset), layout) };
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!(report.fault, Fault::Interior, "{offset}");
        }
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, layout) };
        assert_eq!(pool.reports().count(), 4);
    });
}

/// (design/debug.md `.req.layout`)
#[test]
fn another_layout_is_found() {
    for_each_class!(|pool| {
        let allocated = layout(100, 16);
        let object = pool.alloc(allocated).unwrap();
        let wrong = [layout(99, 16), layout(101, 16), layout(100, 8), layout(0, 1), layout(3000, 16)];
        for (round, wrong) in wrong.into_iter().enumerate() {
            // SAFETY: an object of the pool; a debug pool looks at the layout.
            unsafe { pool.free(object, wrong) };
            assert_eq!(pool.reports().count(), round + 1);
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!((report.size, report.object), (wrong.size(), addr_of(object)));
            assert_eq!(report.fault, Fault::WrongLayout { allocated: 100, align: 16 });
        }
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, allocated) };
        assert_eq!(pool.reports().count(), 5);
    });
}

/// (design/debug.md `.req.after`)
#[test]
fn a_write_after_free_is_found() {
    for_each_class!(|pool| {
        let layout = layout(64, 8);
        for offset in [0, 1, 63] {
            let object = pool.alloc(layout).unwrap();
            // SAFETY: allocated above with this layout. The write is a fault, to memory
            // that is still the arena's.
            unsafe {
                pool.free(object, layout);
                assert!(pool.check(CheckLevel::Deep).is_ok() || offset != 0);
                object.add(offset).write(7);
            }
            let at = Addr::new(addr_of(object).get() + offset);
            let mut found = Vec::new();
            pool.inspect(&mut |report| found.push((report.object, report.size, report.fault)));
            assert!(found.contains(&(addr_of(object), 64, Fault::UsedAfterFree { at })), "{found:?}");
        }
        // They are reported when they leave, and are never handed out again.
        assert_eq!(pool.reports().count(), 0);
        let mut lost = Vec::new();
        pool.inspect(&mut |report| lost.push(report.object));
        for _ in 0..OPTIONS.held {
            let object = pool.alloc(layout).unwrap();
            assert!(!lost.contains(&addr_of(object)));
            // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
            // more.
            unsafe { pool.free(object, layout) };
        }
        assert_eq!(pool.reports().count(), 3);
        assert_eq!(pool.sizes().total - pool.sizes().free, 3 * pool.reserve_size(layout).unwrap());
    });
}

#[test]
fn dropped_pools_leave_no_ledger_behind() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let mut spare = Vec::new();
    let rounds = if cfg!(miri) { 3 } else { 100 };
    for _ in 0..rounds {
        let pool =
            debug(Mvff::create(&arena, MvffOptions { extend_by: GRAIN, ..MvffOptions::default() }).unwrap());
        let layout = layout(if cfg!(miri) { 512 } else { 2 * GRAIN }, 8);
        let object = pool.alloc(layout).unwrap();
        // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
        unsafe { pool.free(object, layout) };
        drop(pool);
        spare.push(arena.sizes().spare);
    }
    assert_eq!(spare[0], spare[rounds - 1]);
}

#[test]
fn what_is_held_back_serves_when_nothing_else_does() {
    let mut memory = memory(if cfg!(miri) { 3 } else { 8 });
    let arena = arena(&mut memory);
    let pool =
        debug(Mvff::create(&arena, MvffOptions { extend_by: GRAIN, ..MvffOptions::default() }).unwrap());
    let mut oracle = Oracle::default();
    let size = if cfg!(miri) { 1200 } else { 500 };
    while oracle.alloc(&pool, layout(size, 8)).is_ok() {}
    let count = oracle.addresses(true).len();
    arena.freeze();
    for _ in 0..effort(3) {
        oracle.clear(&pool);
        assert!(pool.sizes().free > count * size);
        for _ in 0..count {
            oracle.alloc(&pool, layout(size, 8)).unwrap();
        }
    }
    oracle.clear(&pool);
    assert_clean(&pool);
}

#[test]
fn a_pool_that_was_used_is_refused() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    pool.alloc(layout(40, 8)).unwrap();
    assert!(matches!(DebugPool::create(pool, DebugOptions::default()), Err(Error::Parameter(_))));
}

#[test]
fn boxes_live_in_debug_pools() {
    for_each_class!(|pool| {
        let numbers = PoolBox::new_in([1_u64; 8], pool).unwrap();
        assert_eq!(numbers.iter().sum::<u64>(), 8);
        drop(numbers);
        assert_clean(pool);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// A change to any byte of a fence, to any value, is found, and nothing else
    /// is reported.
    #[test]
    fn every_byte_of_a_fence_counts(
        size in 0..80_usize, align in 0..6_u32, offset in any::<usize>(), change in 1..=255_u8,
    ) {
        let mut memory = memory(8);
        let arena = arena(&mut memory);
        let pool = debug(Mvff::create(&arena, MvffOptions::default()).unwrap());
        let layout = layout(size, 1 << align);
        let objects = [(); 3].map(|()| pool.alloc(layout).unwrap());
        let fence = pool.reserve_size(layout).unwrap() - size - SEAL;
        // SAFETY: within what the object takes, though not the client's.
        let byte = unsafe { objects[1].add(size + offset % fence) };
        // SAFETY: a byte of the object's room, which no other reference covers.
        unsafe { byte.write(byte.read() ^ change) };
        for object in objects {
            // SAFETY: allocated from this pool above, with this layout; freed once, and not used any
            // more.
            unsafe { pool.free(object, layout) };
        }
        let report = only_report(&pool);
        prop_assert_eq!(report.object, addr_of(objects[1]));
        prop_assert!(matches!(report.fault, Fault::Overrun { .. }), "{}", report);
    }
}
