//! Code of the client that runs while a pool is described or dropped: it may use the pool, or
//! panic.

use core::fmt::{self, Write};
use core::panic::AssertUnwindSafe;
use std::panic;

use crate::common::{arena, layout, memory};
use tripoint_core::{Arena, ClientArena, Describe, ManualPool, PoolBox, PoolClass, Store};
use tripoint_pools::{
    DebugOptions, DebugPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf, TlsfOptions,
    UnitLayout,
};

/// Allocates in the pool that it describes, as a text in a global pool does.
struct Growing<'pool, P> {
    pool: &'pool P,
    allocations: usize,
}

impl<P: ManualPool> Write for Growing<'_, P> {
    fn write_str(&mut self, _text: &str) -> fmt::Result {
        let object = PoolBox::new_in(0_u64, self.pool).map_err(|_| fmt::Error)?;
        self.allocations += 1;
        drop(object);
        Ok(())
    }
}

fn assert_unlocked(pool: &(impl ManualPool + Describe)) {
    let mut out = Growing { pool, allocations: 0 };
    pool.describe(&mut out, 0).unwrap();
    assert!(out.allocations > 0);
}

/// A pool that is locked here waits for itself without end.
#[test]
fn a_pool_that_is_described_may_be_used() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let debug =
        DebugPool::create(Mvff::create(&arena, MvffOptions::default()).unwrap(), DebugOptions::default());
    assert_unlocked(&Mvff::create(&arena, MvffOptions::default()).unwrap());
    assert_unlocked(&Tlsf::create(&arena, TlsfOptions::default()).unwrap());
    assert_unlocked(&Mvt::create(&arena, MvtOptions { max_size: 512, ..MvtOptions::default() }).unwrap());
    assert_unlocked(
        &Mfs::create(&arena, UnitLayout::new(layout(48, 8)).unwrap(), MfsOptions::default()).unwrap(),
    );
    assert_unlocked(&debug.unwrap());
}

/// The line of an arena's description that says how much memory is in descriptors.
fn descriptors(arena: &ClientArena<'_>) -> String {
    let mut text = String::new();
    arena.describe(&mut text, 0).unwrap();
    text.lines().find(|line| line.contains("in use")).unwrap().to_owned()
}

/// A debug pool keeps its ledger in the arena's memory for descriptors.
#[test]
fn a_hook_that_panics_while_its_pool_is_dropped_loses_no_memory() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let warm = |arena| DebugPool::create(Mvff::create(arena, MvffOptions::default()).unwrap(), options());
    let fill = |pool: &DebugPool<Mvff<_>>| pool.alloc(layout(40, 8)).unwrap();
    let pool = warm(&arena).unwrap();
    fill(&pool);
    drop(pool);
    let (descriptors_before, spare) = (descriptors(&arena), Arena::sizes(&arena).spare);
    let pool = warm(&arena).unwrap();
    let object = fill(&pool);
    // SAFETY: allocated above with this layout.
    unsafe { pool.free(object, layout(40, 8)) };
    // SAFETY: memory of the pool, which a debug pool holds back and finds changed.
    unsafe { pool.header().reach(object.addr()).write(7) };
    assert!(panic::catch_unwind(AssertUnwindSafe(|| drop(pool))).is_err());
    assert_eq!((descriptors(&arena), Arena::sizes(&arena).spare), (descriptors_before, spare));
}

fn options() -> DebugOptions {
    DebugOptions { hook: Some(|report| panic!("{report}")), ..DebugOptions::default() }
}
