//! The pool of the process: for what owns no pool of its own.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{Arena, Error, Result, Store};
use tripoint_pools::{Tlsf, TlsfOptions};

use crate::allocator::PoolAllocator;
use crate::blocks::Blocks;
use crate::cached_global_pool;

/// How much free memory the pool keeps, in bytes.
const SPARE: usize = 64 << 20;

cached_global_pool! {
    static PROCESS: Tlsf<ArenaVm> = || {
        Tlsf::create(
            ArenaVm::create(ArenaVmOptions::default())?,
            TlsfOptions { spare: SPARE, ..TlsfOptions::default() },
        )
    };
}

/// The pool of the process: a [`Store`] without a lifetime, for libraries and for whatever owns no pool of its own.
///
/// All values of this type are the same pool, a [`Tlsf`] in an arena of its own. The first request makes both; they are
/// never dropped. Each thread has a cache in front of it, so that objects of up to 16 KiB seldom take a lock. The rest is as
/// with a [`CachedGlobalPool`](crate::CachedGlobalPool): a child of a fork may allocate, destructors of thread-local values may,
/// signal handlers must not.
///
/// It is an `Allocator` of no size. So a box or a collection in it is as small as with the standard library's allocator, is
/// `'static`, and needs no pool beside it in the user's struct. `Box` is that of `allocator_api2`:
///
/// ```
/// use allocator_api2::boxed::Box;
/// use tripoint_adaptors::ProcessPool;
///
/// struct Node {
///     key: u64,
///     next: Option<Box<Node, ProcessPool>>,
/// }
///
/// let last = Box::new_in(Node { key: 1, next: None }, ProcessPool);
/// let first = Box::new_in(Node { key: 2, next: Some(last) }, ProcessPool);
/// assert_eq!(first.next.as_ref().map_or(0, |next| next.key) + first.key, 3);
/// assert_eq!(size_of_val(&first), size_of::<usize>());
/// let sizes = ProcessPool::pool()?.sizes();
/// # use tripoint_core::PoolClass;
/// assert!(sizes.total > sizes.free);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias("Global", "shared pool"))]
pub struct ProcessPool;

impl ProcessPool {
    /// Returns the pool itself, and makes it first if there is none: to look at its sizes, or to freeze its arena. What the
    /// caches of threads keep counts as allocated.
    ///
    /// # Errors
    /// - those of [`ArenaVm::create`] and [`Tlsf::create`]
    /// - [`Error::Unready`](tripoint_core::Error::Unready) if another thread is still making it after some waiting
    pub fn pool() -> Result<&'static Tlsf<ArenaVm>> {
        PROCESS.pool()
    }

    /// Returns to the pool what the cache of this thread keeps, and what threads share.
    pub fn flush_caches() {
        PROCESS.flush_thread();
        PROCESS.flush_depot();
    }
}

/// A layout with a size, which is what the pool serves. There is none with the largest alignment.
#[inline]
fn sized(layout: Layout) -> Option<Layout> {
    Layout::from_size_align(layout.size().max(1), layout.align()).ok()
}

/// No object has the largest alignment.
const TOO_ALIGNED: Error = Error::Parameter("an object that is aligned to half of all addresses");

// SAFETY: a block is memory of the pool, which is in a static and never dropped or moved; caches hand out blocks as
// large and aligned as asked, each to one caller. Blocks are freed and resized by address. `resize_room` is that of the
// pool, or leaves an object in a block of its size. The type is `Sync`, and a cache takes blocks of any thread.
unsafe impl Store for ProcessPool {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        PROCESS.try_alloc(sized(layout).ok_or(TOO_ALIGNED)?)
    }

    fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>> {
        PROCESS.try_alloc_zeroed(sized(layout).ok_or(TOO_ALIGNED)?)
    }

    unsafe fn zero(&self, bytes: NonNull<u8>, size: usize) {
        // SAFETY: bytes of an object of this store, so of `PROCESS`, which nothing else uses.
        unsafe { PROCESS.zero(bytes, size) };
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        let Some(layout) = sized(layout) else { return };
        // SAFETY: the caller frees an object of this store, so one that `PROCESS` allocated with this layout.
        unsafe { PROCESS.dealloc(object.as_ptr(), layout) };
    }

    unsafe fn resize_room(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the object came from `PROCESS` with the layout `from`, and is not freed.
        unsafe { PROCESS.try_resize(object, sized(from)?, sized(to)?) }
    }

    fn arena(&self) -> Option<&dyn Arena> {
        PROCESS.pool().ok()?.arena()
    }
}

/// The pool as an allocator, which borrows it.
const ALLOCATOR: PoolAllocator<'static, ProcessPool> = PoolAllocator::new(&ProcessPool);

// SAFETY: each call is that of `ALLOCATOR`, which keeps the promises, and its copies are interchangeable. Memory stays valid
// whatever becomes of values of this type, because the pool is never dropped.
unsafe impl Blocks for ProcessPool {
    #[inline]
    fn take(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        ALLOCATOR.take(layout)
    }

    #[inline]
    fn take_zeroed(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        ALLOCATOR.take_zeroed(layout)
    }

    #[inline]
    unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives back a block of this allocator, so of `ALLOCATOR`, with a layout that fits it.
        unsafe { ALLOCATOR.give_back(block, layout) };
    }

    #[inline]
    unsafe fn grow(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: a block of `ALLOCATOR` that `from` fits, and `to` is no smaller, as the caller promises.
        unsafe { ALLOCATOR.grow(block, from, to) }
    }

    #[inline]
    unsafe fn grow_zeroed(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: a block of `ALLOCATOR` that `from` fits, and `to` is no smaller, as the caller promises.
        unsafe { ALLOCATOR.grow_zeroed(block, from, to) }
    }

    #[inline]
    unsafe fn shrink(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: a block of `ALLOCATOR` that `from` fits, and `to` is no larger, as the caller promises.
        unsafe { ALLOCATOR.shrink(block, from, to) }
    }
}
