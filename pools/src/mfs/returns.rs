//! One thread's way to free units that other threads allocate.
//!
//! It packs units into magazines, and pushes them on the pool's stack in one step
//! (design/pool-mfs.md `.returns.aba`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, LockKind, PoolBox, Shared};

use super::magazine::Magazines;
use super::return_stack::BATCH;
use super::{Mfs, Unit};

/// One thread's way to free units of a pool that other threads allocate.
///
/// A store in front of the pool or of a cache, which samples or logs what is allocated, does not observe what is freed
/// here.
///
/// It keeps up to [`Returns::BATCH`] units, which it then returns to the pool with
/// one compare-exchange. [`Returns::flush`] and dropping return what it keeps.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_pools::{Mfs, MfsOptions, UnitOf};
///
/// let orders = Mfs::create(&arena, UnitOf::<u64>::new(), MfsOptions::default())?;
/// let order = orders.cache().pool_boxed(7_u64)?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let mut returns = orders.returns(); // this thread's
///         returns.free_box(order);
///         assert_eq!(returns.kept(), 1);
///     });
/// });
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("remote free"))]
pub struct Returns<'pool, A: Arena, U: Unit, L: LockKind = Shared> {
    pool: &'pool Mfs<A, U, L>,
    magazines: Magazines,
}

// SAFETY: the units it keeps are its own, and no thread's; the pool goes along as a
// shared reference, and is `Sync`.
unsafe impl<A: Arena, U: Unit, L: LockKind> Send for Returns<'_, A, U, L> where Mfs<A, U, L>: Sync {}

impl<A: Arena, U: Unit, L: LockKind> Mfs<A, U, L> {
    /// A way to free, in batches, what other threads allocate; for one thread.
    pub const fn returns(&self) -> Returns<'_, A, U, L> {
        Returns::new(self)
    }
}

impl<'pool, A: Arena, U: Unit, L: LockKind> Returns<'pool, A, U, L> {
    /// The number of units that it frees at once.
    pub const BATCH: usize = BATCH;

    const fn new(pool: &'pool Mfs<A, U, L>) -> Self {
        Self { pool, magazines: Magazines::new(pool.key()) }
    }

    /// Frees a unit of the pool: notes its address, in a unit freed before, and
    /// makes a compare-exchange every [`Returns::BATCH`] times.
    ///
    /// # Safety
    /// - As [`Store::free`](tripoint_core::Store::free) of the pool.
    #[inline]
    pub unsafe fn free(&mut self, object: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller gives up an object of the pool.
        let Some(unit) = self.pool.noted(unsafe { self.pool.take_back(object) }) else { return };
        // SAFETY: a unit of the pool, which was in use until now, so it is in no list.
        unsafe { self.magazines.push(unit, self.pool.unit_size()) };
        if self.magazines.count() == BATCH {
            self.flush();
        }
    }

    /// Drops an object and frees its unit. An object of another pool is dropped
    /// as usual.
    pub fn free_box<T>(&mut self, object: PoolBox<'_, T, Mfs<A, U, L>>) {
        if size_of::<T>() == 0 || !ptr::eq(PoolBox::store(&object), self.pool) {
            return drop(object);
        }
        let object = PoolBox::into_raw(object);
        // SAFETY: the box owned the object, whose memory is a unit of this pool;
        // it is dropped below, whether or not that unwinds, and freed once.
        let _freed = Defer::new(|| unsafe { self.free(object.cast(), Layout::new::<T>()) });
        // SAFETY: owned, initialised, and dropped once.
        unsafe { object.drop_in_place() };
    }

    /// The units it keeps.
    #[must_use]
    pub const fn kept(&self) -> usize {
        self.magazines.count()
    }

    /// Returns the units it keeps to the pool.
    #[cold]
    pub fn flush(&mut self) {
        if let Some(magazines) = self.magazines.take() {
            self.pool.returned().push(magazines);
        }
    }
}

impl<A: Arena, U: Unit, L: LockKind> Drop for Returns<'_, A, U, L> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<A: Arena, U: Unit, L: LockKind> fmt::Debug for Returns<'_, A, U, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returns").field("kept", &self.kept()).finish_non_exhaustive()
    }
}
