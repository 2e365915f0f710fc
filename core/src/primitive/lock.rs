//! Mutual exclusion.

#[cfg(tripoint_loom)]
use loom::sync::Mutex;
#[cfg(tripoint_shuttle)]
use shuttle::sync::Mutex;
#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
use spin::{Mutex, MutexGuard};

#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
use super::yielding::yield_now;

/// How often a thread looks at a lock that another has, before it lets others run, and between two times that it does. The thread that has the
/// lock needs less, unless it does not run.
#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
const LOOKS: u32 = 256;

/// A lock for slow paths. It spins, and if that takes long lets other threads run, where an operating system says how; it neither
/// sleeps nor allocates.
///
/// Never take it in a signal or interrupt handler: the code that was
/// interrupted may hold it. Trips need no lock.
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// Creates a free lock around `value`.
    #[cfg(not(tripoint_loom))]
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Creates a free lock around `value`.
    #[cfg(tripoint_loom)]
    pub fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }
}

#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
impl<T> Lock<T> {
    /// Waits until the lock is free and takes it.
    #[inline]
    pub fn lock(&self) -> impl core::ops::DerefMut<Target = T> + '_ {
        match self.0.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<impl core::ops::DerefMut<Target = T> + '_> {
        self.0.try_lock()
    }

    /// Looks at the lock without writing to it, so that the thread that has it is not disturbed.
    #[cold]
    #[inline(never)]
    fn wait(&self) -> MutexGuard<'_, T> {
        let mut looks = 0_u32;
        loop {
            if !self.0.is_locked()
                && let Some(guard) = self.0.try_lock()
            {
                return guard;
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) {
                yield_now();
            } else {
                core::hint::spin_loop();
            }
        }
    }

    /// The value, without locking: the exclusive borrow proves that no thread holds the lock.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// The locks of models can be poisoned. The model has failed already then, and continues
/// with the value.
#[cfg(any(tripoint_loom, tripoint_shuttle))]
impl<T> Lock<T> {
    /// Waits until the lock is free and takes it.
    pub fn lock(&self) -> impl core::ops::DerefMut<Target = T> + '_ {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<impl core::ops::DerefMut<Target = T> + '_> {
        self.0.try_lock().ok()
    }

    /// The value, without locking: the exclusive borrow proves that no thread holds the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<T> Lock<T> {
    /// Where the value is, for readers outside of the process. Waits for the lock. Zero in models, which have none.
    #[doc(hidden)]
    pub fn value_address(&self) -> usize {
        if cfg!(any(tripoint_loom, tripoint_shuttle)) { 0 } else { core::ptr::from_ref(&*self.lock()).addr() }
    }
}

impl<T> core::fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Lock(..)")
    }
}
