//! The kinds of lock that a pool may have ([design/core.md `.lock.kind`](crate::design::overview)).

use core::cell::{RefCell, RefMut};
use core::fmt;
use core::ops::DerefMut;

use super::lock::Lock;

mod sealed {
    /// Keeps out kinds whose locks would admit two callers at once.
    pub trait Sealed {}

    impl Sealed for super::Shared {}
    impl Sealed for super::Owned {}
}

/// The kind of lock that a pool has: a parameter of the pool classes. It is [`Shared`] or [`Owned`].
pub trait LockKind: sealed::Sealed + fmt::Debug + 'static {
    /// The lock around a value of a pool.
    type Lock<T>: PoolLock<T>;
}

/// A lock of some [`LockKind`], around a value of a pool.
pub trait PoolLock<T>: fmt::Debug {
    /// Creates a free lock around `value`.
    fn new(value: T) -> Self;

    /// Takes the lock until the guard is dropped. If another thread has it, this waits.
    ///
    /// # Errors
    /// [`Busy`] if the kind is [`Owned`], and the lock is taken further up this call.
    fn lock(&self) -> Result<impl DerefMut<Target = T> + '_, Busy>;

    /// The value, without locking: the exclusive borrow proves that no caller holds the lock.
    fn get_mut(&mut self) -> &mut T;
}

/// An owned pool was called from inside one of its own calls: for example by a visitor of its free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Any thread may call the pool: it has a [`Lock`], which spins, and after a while lets other threads run. Pools are of this
/// kind by default.
#[derive(Debug)]
pub enum Shared {}

impl LockKind for Shared {
    type Lock<T> = Lock<T>;
}

impl<T> PoolLock<T> for Lock<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn lock(&self) -> Result<impl DerefMut<Target = T> + '_, Busy> {
        Ok(self.lock())
    }

    #[inline]
    fn get_mut(&mut self) -> &mut T {
        self.get_mut()
    }
}

/// One thread at a time owns the pool, and calls need no lock: a load and two stores show whether it is in a call already.
///
/// Such a pool is `Send` and not `Sync`. So its allocation points, caches, boxes and other borrowers all stay in one
/// thread: a program that sends one of them to another does not compile. The compiler then says that a `RefCell` in the pool
/// "cannot be shared between threads safely". If several threads need the pool, make it with `create` instead of
/// `create_owned`. A tripper and a plain reference to an object may be sent, because neither leads to the pool.
///
/// A call from inside another call of the same pool, for example by a visitor of
/// [`PoolClass::walk_free`](crate::PoolClass::walk_free), is refused with [`Error::Busy`](crate::Error::Busy). A free has no
/// error: an object that is freed in such a call stays allocated until the pool is dropped. Other calls without an error
/// report less: [`PoolClass::sizes`](crate::PoolClass::sizes) no free memory, and `walk_free` no block. A check leaves the
/// free memory out.
#[derive(Debug)]
pub enum Owned {}

impl LockKind for Owned {
    type Lock<T> = OwnedLock<T>;
}

/// The lock of an [`Owned`] pool: it admits one caller at a time, and refuses others.
pub struct OwnedLock<T>(RefCell<T>);

impl<T> PoolLock<T> for OwnedLock<T> {
    fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    #[inline(always)]
    fn lock(&self) -> Result<impl DerefMut<Target = T> + '_, Busy> {
        let guard: Result<RefMut<'_, T>, Busy> = self.0.try_borrow_mut().map_err(|_| Busy);
        guard
    }

    #[inline]
    fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T> fmt::Debug for OwnedLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedLock(..)")
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;

    use super::*;

    /// Takes a lock of either kind twice, one time after the other.
    fn one_after_the_other<K: LockKind>() {
        let mut lock = <K::Lock<u32>>::new(1);
        *lock.lock().unwrap() += 1;
        *lock.lock().unwrap() += 1;
        assert_eq!(*lock.get_mut(), 3);
    }

    #[test]
    fn calls_take_turns() {
        one_after_the_other::<Shared>();
        one_after_the_other::<Owned>();
    }

    /// (design/core.md `.req.reentry`)
    #[test]
    fn a_call_inside_a_call_is_refused() {
        let lock = OwnedLock::new(1);
        let mut outer = lock.lock().unwrap();
        assert_eq!(lock.lock().err(), Some(Busy));
        *outer += 1;
        assert_eq!(lock.lock().err(), Some(Busy), "also after a refusal");
        drop(outer);
        assert_eq!(*lock.lock().unwrap(), 2);
    }

    #[test]
    fn a_call_that_unwinds_frees_the_lock() {
        let lock = OwnedLock::new(1);
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock().unwrap();
            panic!("as a visitor may");
        }));
        assert!(unwound.is_err());
        assert_eq!(*lock.lock().unwrap(), 1);
    }
}
