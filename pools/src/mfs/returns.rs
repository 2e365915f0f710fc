//! Units that other threads freed, and the pool takes back in one step.
//!
//! A thread that frees units packs them by itself and pushes them, chained, on the
//! pool's stack; a cache takes the whole stack. Nobody takes single units off it,
//! so a unit that comes back meanwhile confuses no thread
//! (design/pool-mfs.md `.returns.aba`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Defer, Ordering};
use tripoint_core::{Arena, Block, ManualPool, PoolBox, PoolClass};

use super::free_list::{Chain, FreeList, FreeUnit};
use super::magazine::Magazines;
use super::{Mfs, Unit};
use crate::link::LinkKey;
use crate::poison::poison;

/// The units that a [`Returns`] frees at once.
pub(super) const BATCH: usize = 64;

/// A stack of free units: any thread pushes chains, any thread takes everything.
///
/// It has a cache line to itself, which freeing threads write.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct ReturnStack {
    head: AtomicPtr<FreeUnit>,
    key: LinkKey,
}

impl ReturnStack {
    /// An empty stack, for units of the pool with this key.
    pub(crate) fn of(key: LinkKey) -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()), key }
    }

    /// Pushes a chain: one compare-exchange, and one more for each push of another
    /// thread that comes first.
    pub(crate) fn push(&self, chain: Chain) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the last unit of a chain is free, and stays valid as long as the stack
            // that it goes into is used (`Chain::of`).
            unsafe { FreeUnit::link(chain.last().cast(), NonNull::new(head), self.key) };
            // Release: the thread that takes the units sees their links, and what their
            // last user did (design/pool-mfs.md `.returns.order`).
            let pushed = self.head.compare_exchange_weak(
                head,
                chain.first().as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match pushed {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes everything: one swap, or a load if there is nothing.
    pub(crate) fn take(&self) -> FreeList {
        if self.head.load(Ordering::Relaxed).is_null() {
            return FreeList::of(self.key);
        }
        let first = NonNull::new(self.head.swap(ptr::null_mut(), Ordering::Acquire));
        // SAFETY: pushed units are free, linked to each other and to nothing else,
        // and the swap took all of them from everybody else.
        unsafe { FreeList::from_link(first, self.key) }
    }
}

/// One thread's way to free units of a pool that other threads allocate.
///
/// It keeps up to [`Returns::BATCH`] units, which it then gives to the pool with one
/// compare-exchange. [`Returns::flush`] and dropping give what there is.
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
pub struct Returns<'pool, A: Arena, U: Unit> {
    pool: &'pool Mfs<A, U>,
    magazines: Magazines,
}

// SAFETY: the units it keeps are its own, and no thread's; the pool is shared by
// `Sync` reference.
unsafe impl<A: Arena, U: Unit> Send for Returns<'_, A, U> {}

impl<'pool, A: Arena, U: Unit> Returns<'pool, A, U> {
    /// The number of units that it frees at once.
    pub const BATCH: usize = BATCH;

    pub(super) const fn new(pool: &'pool Mfs<A, U>) -> Self {
        Self { pool, magazines: Magazines::new(pool.key()) }
    }

    /// Frees a unit of the pool: notes its address, in a unit freed before, and
    /// makes a compare-exchange every [`Returns::BATCH`] times.
    ///
    /// # Safety
    /// - As [`Store::free`](tripoint_core::Store::free) of the pool.
    #[inline]
    pub unsafe fn free(&mut self, object: NonNull<u8>, _layout: Layout) {
        let size = self.pool.unit_size();
        let object = self.pool.header().reach(object.addr());
        if !self.pool.may_be_unit(object) {
            return self.pool.note_damage();
        }
        // SAFETY: the caller gives up an object of the pool, which is a unit.
        unsafe { poison(Block::new(object, size)) };
        // SAFETY: a unit of the pool, which nothing uses any more, and which is in no list.
        unsafe { self.magazines.push(object, size) };
        if self.magazines.count() == BATCH {
            self.flush();
        }
    }

    /// Drops an object and frees its unit. An object of another pool is dropped
    /// as ever.
    pub fn free_box<T>(&mut self, object: PoolBox<'_, T, Mfs<A, U>>) {
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

impl<A: Arena, U: Unit> Drop for Returns<'_, A, U> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<A: Arena, U: Unit> fmt::Debug for Returns<'_, A, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returns").field("kept", &self.kept()).finish_non_exhaustive()
    }
}
