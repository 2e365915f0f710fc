//! The cache that a thread has of a global pool.
//!
//! It lies in the pool itself, and a word of thread-local storage leads to it. A thread that uses its cache takes
//! it out of that word meanwhile. So whatever calls the allocator in between (a hook, a signal handler) finds none, and
//! goes to the pool (design/adaptors.md `.cached.slot`).

use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Ordering, compiler_fence};
use tripoint_core::{ManualPool, Result};
use tripoint_pools::{Cache, CacheDescriptor, Depot};

use crate::fork_gate::Inside;

/// A thread's word for its cache, in thread-local storage that is not dropped, so that
/// it may be asked at any time of the thread's life.
#[derive(Debug)]
pub struct ThreadCache<P: ManualPool + 'static> {
    /// The cache; null if there is none yet, or no longer, or while it is in use.
    slot: AtomicPtr<Kept<P>>,
    /// Whether the thread has not asked for a cache yet, or only while there was no memory for it.
    is_new: Cell<bool>,
}

/// A cache, and the descriptor that it borrows, at an address that does not change.
#[derive(Debug)]
struct Kept<P: ManualPool + 'static> {
    cache: MaybeUninit<Cache<'static, P>>,
    descriptor: CacheDescriptor,
}

impl<P: ManualPool + 'static> ThreadCache<P> {
    /// No cache yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { slot: AtomicPtr::new(ptr::null_mut()), is_new: Cell::new(true) }
    }

    /// Passes the cache to `work`, if there is one that is not in use.
    #[inline(always)]
    pub(crate) fn with<R>(&self, work: impl FnOnce(&Cache<'static, P>) -> R) -> Option<R> {
        let kept = self.slot.load(Ordering::Relaxed);
        // SAFETY: what the slot leads to was made by `make`, and is freed only by `end`, which empties the slot. Only this
        // thread uses it, and only once at a time, because the slot is empty meanwhile.
        let cache = unsafe { kept.as_ref()?.cache.assume_init_ref() };
        self.slot.store(ptr::null_mut(), Ordering::Relaxed);
        // A handler of this thread sees the slot as it was stored.
        compiler_fence(Ordering::SeqCst);
        let result = work(cache);
        compiler_fence(Ordering::SeqCst);
        self.slot.store(kept, Ordering::Relaxed);
        Some(result)
    }

    /// Whether the thread has not asked for a cache yet, or asked and got none. From now on it counts as having asked.
    pub(crate) fn asks_first(&self) -> bool {
        self.is_new.replace(false)
    }

    /// Makes the cache, in the depot's pool.
    ///
    /// # Errors
    /// Those of the pool; the thread has no cache then. If the pool had no memory for it, the thread asks again.
    pub(crate) fn make(&self, depot: &'static Depot<'static, P>) -> Result<()> {
        let _inside = Inside::enter();
        let memory = depot.pool().alloc(Layout::new::<Kept<P>>()).inspect_err(|_| self.is_new.set(true));
        let place = memory?.cast::<Kept<P>>();
        let free = || {
            // SAFETY: allocated above with this layout; used by nothing.
            unsafe { depot.pool().free(place.cast(), Layout::new::<Kept<P>>()) };
        };
        // SAFETY: fresh memory with room for a `Kept`, which is valid without its cache.
        unsafe {
            place.write(Kept {
                cache: MaybeUninit::uninit(),
                descriptor: CacheDescriptor::new(*depot.classes()),
            });
        }
        // SAFETY: written above. Nothing moves or writes the descriptor while the cache borrows it, and `end` drops the
        // cache before it frees both. Nothing else uses the field.
        let descriptor: &'static CacheDescriptor = unsafe { &(*place.as_ptr()).descriptor };
        match Cache::with_depot(depot, descriptor) {
            Ok(cache) => {
                // SAFETY: the memory is this function's; no reference to this field exists.
                unsafe { (&raw mut (*place.as_ptr()).cache).write(MaybeUninit::new(cache)) };
                self.slot.store(place.as_ptr(), Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                free();
                Err(error)
            }
        }
    }

    /// Returns all that the cache keeps, and its memory, to the pool. The thread gets no cache from then on.
    pub(crate) fn end(&self) {
        self.is_new.set(false);
        let Some(kept) = NonNull::new(self.slot.swap(ptr::null_mut(), Ordering::Relaxed)) else { return };
        let _inside = Inside::enter();
        // SAFETY: made by `make`, and taken out of the slot, so nothing else uses it, and it is read once.
        let cache = unsafe { kept.as_ref().cache.assume_init_read() };
        let pool = cache.pool();
        drop(cache);
        // SAFETY: allocated in this pool by `make`, with this layout; the cache that borrowed the descriptor is dropped.
        unsafe { pool.free(kept.cast(), Layout::new::<Kept<P>>()) };
    }
}

impl<P: ManualPool + 'static> Default for ThreadCache<P> {
    fn default() -> Self {
        Self::new()
    }
}
