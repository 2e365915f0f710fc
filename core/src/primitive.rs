//! The one place that names atomics, fences and locks.
//!
//! Everything else in the workspace imports them from here, so that building
//! with `--cfg tripoint_loom` replaces all of them with loom's and the models in
//! `tests-loom` check the code that ships (design/core.md `.primitive`).

// (design/bare-metal.md `.req.refuse`, `.target.cas`)
#[cfg(not(target_has_atomic = "ptr"))]
compile_error!(
    "tripoint needs compare-and-swap on words, which this target does not have: trips, flips and locks are made of it"
);

mod once;

pub use once::Once;

#[cfg(not(tripoint_loom))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
#[cfg(tripoint_loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};

#[cfg(all(not(tripoint_loom), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(all(tripoint_loom, target_has_atomic = "64"))]
pub(crate) use loom::sync::atomic::AtomicU64;

// Loom does not model compiler fences; the real one costs nothing there.
pub use core::sync::atomic::compiler_fence;

/// A mutual exclusion for slow paths: spins, never sleeps, never allocates.
///
/// Never take it in a signal or interrupt handler: the code that was
/// interrupted may hold it. Trips need no lock.
#[cfg(not(tripoint_loom))]
pub struct Lock<T>(spin::Mutex<T>);

/// A mutual exclusion for slow paths, as loom models it.
#[cfg(tripoint_loom)]
pub struct Lock<T>(loom::sync::Mutex<T>);

#[cfg(not(tripoint_loom))]
impl<T> Lock<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(spin::Mutex::new(value))
    }

    /// Waits until the lock is free and takes it.
    #[inline]
    pub fn lock(&self) -> impl core::ops::DerefMut<Target = T> + '_ {
        self.0.lock()
    }

    /// The value, without locking: the exclusive borrow proves nobody holds it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

#[cfg(tripoint_loom)]
impl<T> Lock<T> {
    /// A free lock around `value`.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits until the lock is free and takes it.
    pub fn lock(&self) -> impl core::ops::DerefMut<Target = T> + '_ {
        // A poisoned lock means a model already failed; go on with the value.
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// The value, without locking: the exclusive borrow proves nobody holds it.
    pub fn get_mut(&mut self) -> &mut T {
        match self.0.get_mut() {
            Ok(value) => value,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

impl<T> core::fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Lock(..)")
    }
}
