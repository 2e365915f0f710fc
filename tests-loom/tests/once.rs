//! A value made once: whoever finds it finds it whole (design/adaptors.md
//! `.global.make`).
#![cfg(tripoint_loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use tests_loom::model;
use tripoint_core::Error;
use tripoint_core::primitive::{AtomicUsize, Once, Ordering};

/// A value in two steps, which loom watches: made, then written.
struct Watched(UnsafeCell<u32>);

// SAFETY: written only while it is made; loom reports reads that race with that.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Watched {
    fn make() -> Self {
        let value = Self(UnsafeCell::new(0));
        // SAFETY: nobody else has it yet.
        value.0.with_mut(|value| unsafe { *value = 7 });
        value
    }

    fn read(&self) -> u32 {
        // SAFETY: nobody writes it any more.
        self.0.with(|value| unsafe { *value })
    }
}

#[test]
fn one_makes_it_and_all_find_it_whole() {
    model(|| {
        let shared = Arc::new((Once::new(), AtomicUsize::new(0)));
        let ask = |(once, makes): &(Once<Watched>, AtomicUsize)| {
            let made = once.get_or_try_make(|| {
                makes.fetch_add(1, Ordering::Relaxed);
                Ok(Watched::make())
            });
            match made {
                Ok(value) => assert_eq!(value.read(), 7),
                // In a model, whoever finds it being made does not wait.
                Err(error) => assert_eq!(error, Error::Resource),
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

/// The twin with a step broken: the value is announced without an order.
#[test]
#[should_panic(expected = "Causality violation")]
// Loom's own cell is not `Sync`; the race on it is what the model is about.
#[allow(clippy::arc_with_non_send_sync)]
fn announced_without_order_it_is_found_unfinished() {
    model(|| {
        let shared = Arc::new((UnsafeCell::new(0_u32), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            // SAFETY: loom reports the race this is.
            other.0.with_mut(|value| unsafe { *value = 7 });
            other.1.store(2, Ordering::Relaxed);
        });
        if shared.1.load(Ordering::Acquire) == 2 {
            // SAFETY: as above.
            shared.0.with(|value| unsafe { *value });
        }
        thread.join().unwrap();
    });
}
