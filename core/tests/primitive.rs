//! Values that are made at first use, or held under a lock, can be printed at
//! any time.
#![cfg(not(tripoint_loom))]

use tripoint_core::Lock;
use tripoint_core::internal::Once;

#[test]
fn a_lock_that_is_held_can_be_shown() {
    let mut lock = Lock::new(7);
    let held = lock.lock();
    assert_eq!(format!("{lock:?}"), "Lock(..)");
    drop(held);
    *lock.lock() += 1;
    *lock.get_mut() += 1;
    assert_eq!(*lock.lock(), 9);
}

#[test]
fn a_value_that_is_being_made_can_be_shown() {
    let once: Once<u32> = Once::default();
    let made = once.get_or_try_init(|| {
        assert_eq!(format!("{once:?}"), "Once(..)");
        Ok(7)
    });
    assert_eq!(made, Ok(&7));
}
