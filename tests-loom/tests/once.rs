//! A value made once: a thread that finds it finds it whole (design/adaptors.md
//! `.global.make`).
//!
//! Bound: none.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{UnsafeCell, model_unbounded, thread};
use tripoint_core::Error;
use tripoint_core::internal::{AtomicUsize, Once, Ordering};

/// A value in two steps, which loom watches: made, then written.
struct Watched(UnsafeCell<u32>);

// SAFETY: the value is written only while it is made; loom reports reads that
// race with that.
unsafe impl Send for Watched {}
// SAFETY: shared, it is only read; loom reports reads that race with its making.
unsafe impl Sync for Watched {}

impl Watched {
    fn make() -> Self {
        let value = Self(UnsafeCell::new(0));
        value.write();
        value
    }

    fn write(&self) {
        // SAFETY: no other thread has it yet; the scheduler reports it if one has.
        self.0.with_mut(|value| unsafe { *value = 7 });
    }

    fn read(&self) -> u32 {
        // SAFETY: no thread writes it any more; the scheduler reports it if one does.
        self.0.with(|value| unsafe { *value })
    }
}

#[test]
fn one_makes_it_and_all_find_it_whole() {
    model_unbounded(|| {
        let shared = Arc::new((Once::new(), AtomicUsize::new(0)));
        let ask = |(once, makes): &(Once<Watched>, AtomicUsize)| {
            let made = once.get_or_try_init(|| {
                makes.fetch_add(1, Ordering::Relaxed);
                Ok(Watched::make())
            });
            match made {
                Ok(value) => assert_eq!(value.read(), 7),
                // In a model, a thread that finds the value in the making does
                // not wait.
                Err(error) => assert_eq!(error, Error::Unready),
            }
        };
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || ask(&other));
        ask(&shared);
        thread.join().unwrap();
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
        assert_eq!(shared.0.get().map(Watched::read), Some(7));
    });
}

/// The twin with a step broken: the value is announced without an order. Only an
/// ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn announced_without_order_it_is_found_unfinished() {
    announce(|value, state| {
        value.write();
        state.store(2, Ordering::Relaxed);
    });
}

/// The twin: the value is announced before it is written.
#[test]
#[should_panic(expected = "Causality violation: ")]
fn announced_too_early_it_is_found_unfinished() {
    announce(|value, state| {
        state.store(2, Ordering::Release);
        value.write();
    });
}

fn announce(make: fn(&Watched, &AtomicUsize)) {
    model_unbounded(move || {
        let shared = Arc::new((Watched(UnsafeCell::new(0)), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || make(&other.0, &other.1));
        if shared.1.load(Ordering::Acquire) == 2 {
            assert_eq!(shared.0.read(), 7, "Causality violation: it is not finished");
        }
        thread.join().unwrap();
    });
}
