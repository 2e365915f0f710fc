//! `PoolBox` and `PoolRc`: objects that free themselves.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use tripoint_core::{ManualPool, PoolBox, PoolRc, PoolSizes};

/// Counts its drops, and panics in them if asked to.
struct Loud<'c> {
    drops: &'c Cell<u32>,
    panics: bool,
}

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics, "on purpose");
    }
}

pub(crate) fn boxes_free_what_they_drop<P: ManualPool>(pool: &P) {
    let keep = PoolBox::new_in(1_u64, pool).unwrap();
    let before = pool.sizes();
    let drops = &Cell::new(0);
    drop(PoolBox::new_in(Loud { drops, panics: false }, pool).unwrap());
    assert_eq!((pool.sizes().free, drops.get()), (before.free, 1));

    let loud = PoolBox::new_in(Loud { drops, panics: true }, pool).unwrap();
    assert!(pool.sizes().free < before.free);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(loud))).is_err());
    assert_eq!((pool.sizes().free, drops.get()), (before.free, 2), "freed although the drop panicked");

    assert_eq!(PoolBox::into_inner(PoolBox::new_in(7_u32, pool).unwrap()), 7);
    assert_eq!(pool.sizes().free, before.free);
    assert_eq!(*keep, 1);
}

/// What has no size takes no memory, and is dropped all the same.
pub(crate) fn objects_without_size_take_no_memory<P: ManualPool>(pool: &P) {
    thread_local!(static DROPS: Cell<u32> = const { Cell::new(0) });
    struct Empty;
    impl Drop for Empty {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }
    drop(PoolBox::new_in(Empty, pool).unwrap());
    assert_eq!(DROPS.get(), 1);
    assert_eq!(pool.sizes(), PoolSizes::default());
}

pub(crate) fn the_last_clone_frees<P: ManualPool>(pool: &P) {
    let keep = PoolBox::new_in(1_u64, pool).unwrap();
    let before = pool.sizes();
    let drops = &Cell::new(0);
    let mut first = PoolRc::new_in(Loud { drops, panics: false }, pool).unwrap();
    let taken = before.free + (pool.sizes().total - before.total) - pool.sizes().free;
    assert!(taken >= pool.reserve_size(PoolRc::<Loud<'_>, P>::layout()).unwrap());
    assert!(PoolRc::get_mut(&mut first).is_some());
    let other = PoolRc::new_in(Loud { drops, panics: false }, pool).unwrap();
    let clone = PoolRc::clone(&first);
    assert!(PoolRc::ptr_eq(&first, &clone) && !PoolRc::ptr_eq(&first, &other));
    assert!(PoolRc::get_mut(&mut first).is_none());
    assert_eq!((PoolRc::count(&first), PoolRc::count(&other)), (2, 1));

    drop((first, other));
    assert_eq!((drops.get(), PoolRc::count(&clone)), (1, 1));
    drop(clone);
    assert_eq!((drops.get(), pool.sizes().free), (2, before.free));

    let loud = PoolRc::new_in(Loud { drops, panics: true }, pool).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(loud))).is_err());
    assert_eq!(pool.sizes().free, before.free, "freed although the drop panicked");

    let shared = PoolRc::new_in(7_u32, pool).unwrap();
    let clone = PoolRc::clone(&shared);
    let shared = PoolRc::try_unwrap(shared).unwrap_err();
    drop(clone);
    assert_eq!(PoolRc::try_unwrap(shared).unwrap(), 7);
    assert_eq!((pool.sizes().free, *keep), (before.free, 1));
}
