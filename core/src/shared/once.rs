//! A value that is made once, by the thread that asks first.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;

use crate::aver;
use crate::primitive::{AtomicUsize, Ordering};
use crate::values::error::{Error, Result};

const UNMADE: usize = 0;
const MAKING: usize = 1;
const MADE: usize = 2;

/// How often [`Once::get_or_try_init`] checks whether another thread has made the
/// value before it gives up: this takes a few hundredths to a few tenths of a second.
/// In a model no time passes, so one check is as good as many. In an interpreter
/// each check takes thousands of times as long.
const PATIENCE: u32 = if cfg!(any(tripoint_loom, tripoint_shuttle)) {
    1
} else if cfg!(miri) {
    1 << 10
} else {
    1 << 22
};

/// A value that is made at first use. A caller that waits for it spins; it neither sleeps nor
/// allocates.
///
/// Unlike a lock, it does not wait forever, because the thread that waits may be the one that
/// makes the value: what makes a global allocator may ask it for memory.
// (design/adaptors.md `.global.reentry`)
pub struct Once<T> {
    state: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: one thread makes the value and another may drop it, so it is sent (`T: Send`). All
// threads that find it made share it (`T: Sync`).
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// Has no value yet.
    #[cfg(not(tripoint_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { state: AtomicUsize::new(UNMADE), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Has no value yet.
    #[cfg(tripoint_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { state: AtomicUsize::new(UNMADE), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// The value, if it was made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != MADE {
            return None;
        }
        // SAFETY: the value was written before `MADE` was stored, which the load
        // acquired, and is not written again.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Returns the value, and calls `make` first if there is none. If `make` fails, the
    /// value stays unmade, and the next caller tries again.
    ///
    /// # Errors
    /// - those of `make`
    /// - [`Error::Unready`] if the value is still being made after some waiting, by another
    ///   thread that is slow, or by this thread further down its stack
    #[inline]
    pub fn get_or_try_init(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        match self.get() {
            Some(value) => Ok(value),
            None => self.try_make(make),
        }
    }

    #[cold]
    fn try_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        for _ in 0..PATIENCE {
            let begun = self.state.compare_exchange(UNMADE, MAKING, Ordering::Acquire, Ordering::Acquire);
            match begun {
                Ok(_) => return self.make(make),
                Err(MAKING) => core::hint::spin_loop(),
                Err(_) => break,
            }
        }
        self.get().ok_or(Error::Unready)
    }

    /// Makes the value. The state is `MAKING`, set by this thread.
    fn make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let mut making = Making { state: &self.state, outcome: UNMADE };
        let made = make()?;
        // SAFETY: only the thread that changed `UNMADE` to `MAKING` gets here. No thread
        // reads the value, or has a reference to it, before it is `MADE`.
        unsafe { self.value.get().write(MaybeUninit::new(made)) };
        making.outcome = MADE;
        drop(making);
        // The maker gets its reference as every other caller does. A reference derived
        // from the write would be exclusive at its root, and would end when another
        // caller writes inside the value.
        let value = self.get();
        aver!(value.is_some(), "a value that was just made is not there");
        value.ok_or(Error::Unready)
    }
}

/// Ends the making of a value, also when it unwinds.
struct Making<'once> {
    state: &'once AtomicUsize,
    outcome: usize,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.state.store(self.outcome, Ordering::Release);
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        if self.state.load(Ordering::Acquire) == MADE {
            // SAFETY: the value was made, and nothing uses it after its owner is dropped.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once(..)")
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::rc::Rc;
    use std::thread;

    #[test]
    fn it_is_made_once_for_all_threads() {
        let once = Once::new();
        let makes = AtomicUsize::new(0);
        let make = || Ok(makes.fetch_add(1, Ordering::Relaxed));
        assert_eq!(once.get(), None);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(once.get_or_try_init(make), Ok(&0)));
            }
        });
        assert_eq!((once.get(), makes.load(Ordering::Relaxed)), (Some(&0), 1));
    }

    #[test]
    fn after_a_refusal_or_a_panic_it_can_be_tried_again() {
        let once = Once::new();
        assert_eq!(once.get_or_try_init(|| Err(Error::Memory)), Err(Error::Memory));
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            let _ = once.get_or_try_init(|| panic!("told to"));
        }));
        assert!(panicked.is_err());
        assert_eq!(once.get_or_try_init(|| Ok(7)), Ok(&7));
    }

    #[test]
    fn who_asks_while_making_it_is_refused() {
        let once = Once::new();
        let made = once.get_or_try_init(|| {
            assert_eq!(once.get_or_try_init(|| Ok(1)), Err(Error::Unready));
            Ok(2)
        });
        assert_eq!(made, Ok(&2));
    }

    /// Two references are used in turn, and both write inside the value. Miri reports an
    /// error, in either model of aliasing, if the maker's is worth less than the other.
    #[test]
    fn the_makers_reference_is_as_good_as_any() {
        let once = Once::new();
        let makers = once.get_or_try_init(|| Ok(Cell::new(1))).unwrap();
        let others = once.get().unwrap();
        others.set(others.get() + 1);
        makers.set(makers.get() + 1);
        others.set(others.get() + 1);
        assert_eq!((makers.get(), others.get()), (4, 4));
        assert!(core::ptr::eq(makers, others));
    }

    #[test]
    fn it_drops_its_value() {
        let value = Rc::new(());
        let once = Once::new();
        once.get_or_try_init(|| Ok(Rc::clone(&value))).unwrap();
        drop(once);
        assert_eq!(Rc::strong_count(&value), 1);
    }
}
