//! Event hooks that unwind while an allocation point gives back what it has (design/ap.md `.slow.report`).

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::catch_unwind;

use crate::common::{GRAIN, TestArena, arena, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{CheckLevel, Event, EventHook, ManualPool, PoolBox};
use tripoint_pools::{Mvff, MvffOptions, Tlsf, TlsfOptions};

/// Unwinds when memory goes back to the arena, once.
#[derive(Default)]
struct Unwinds(AtomicBool);

impl EventHook for Unwinds {
    fn event(&self, event: Event) {
        if matches!(event, Event::Retract { .. }) {
            assert!(!self.0.swap(false, Ordering::Relaxed), "a hook that fails");
        }
    }
}

/// How a point gives back what it has.
#[derive(Clone, Copy)]
enum Way {
    /// Emptied, and dropped while that unwinds.
    Emptied,
    Dropped,
}

/// Has the hook unwind while a point gives back what it has. Then all memory of the pool is free, or in the arena, and points
/// work as before.
fn nothing_is_lost<P: ManualPool>(pool: &P, mut point: AllocationPoint<'_, P>, hook: &Unwinds, way: Way) {
    hook.0.store(true, Ordering::Relaxed);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        if let Way::Emptied = way {
            point.empty();
        }
        drop(point);
    }));
    assert!(unwound.is_err(), "no memory went back");
    pool.check(CheckLevel::Deep).unwrap();
    let mut point = AllocationPoint::create(pool).unwrap();
    assert_eq!(point.room(), 0, "a new point has memory");
    let objects: Vec<_> = (0..20).map(|number| point.boxed([number; 9]).unwrap()).collect();
    assert!(objects.iter().zip(0_u64..).all(|(object, number)| object[8] == number));
    drop(objects);
    drop(point);
    pool.check(CheckLevel::Deep).unwrap();
    let sizes = pool.sizes();
    assert_eq!(sizes.free, sizes.total, "bytes are lost");
}

/// Blocks of several grains wait in a buffer, and each is the last object of its grain.
fn while_blocks_wait<P: ManualPool>(pool: &P, hook: &Unwinds, way: Way) {
    let new = || PoolBox::new_in([0_u64; 8], pool).unwrap();
    let mut objects: Vec<_> = (0..3 * GRAIN / 64).map(|_| Some(new())).collect();
    let mut others = Vec::new();
    while pool.sizes().free != 0 {
        others.push(PoolBox::new_in(0_u64, pool).unwrap()); // a granule
    }
    objects.iter_mut().step_by(8).for_each(|object| *object = None);
    let mut point = AllocationPoint::create(pool).unwrap();
    let of_point: Vec<_> = (0..10).map(|_| point.boxed([0_u64; 8]).unwrap()).collect();
    assert_ne!(point.room(), 0, "no block waits");
    drop((objects, others, of_point));
    nothing_is_lost(pool, point, hook, way);
}

/// A buffer keeps objects that were freed through its point.
fn while_freed_blocks_are_kept<P: ManualPool>(pool: &P, hook: &Unwinds, way: Way) {
    let mut point = AllocationPoint::create(pool).unwrap();
    let objects: Vec<_> = (0..3 * GRAIN / 64).map(|_| point.boxed([0_u64; 8]).unwrap()).collect();
    objects.into_iter().for_each(|object| point.free_box(object));
    nothing_is_lost(pool, point, hook, way);
}

/// Runs a test in each class that returns memory, for each way.
macro_rules! in_returning_classes {
    ($($test:ident)*) => { $( mod $test { use super::*;
        #[test]
        fn mvff() {
            for way in [Way::Emptied, Way::Dropped] {
                let mut memory = memory(24);
                let (client, hook) = (arena(&mut memory), Unwinds::default());
                let arena = TestArena::telling(&client, &hook);
                let options = MvffOptions { extend_by: GRAIN, fill_size: 1024, spare: 0, bin_blocks: 0 };
                super::$test(&Mvff::create(&arena, options).unwrap(), &hook, way);
            }
        }

        #[test]
        fn tlsf() {
            for way in [Way::Emptied, Way::Dropped] {
                let mut memory = memory(24);
                let (client, hook) = (arena(&mut memory), Unwinds::default());
                let arena = TestArena::telling(&client, &hook);
                let options = TlsfOptions { extend_by: GRAIN, fill_size: 1024, spare: 0, bin_blocks: 0 };
                super::$test(&Tlsf::create(&arena, options).unwrap(), &hook, way);
            }
        }
    } )* };
}

in_returning_classes!(while_blocks_wait while_freed_blocks_are_kept);
