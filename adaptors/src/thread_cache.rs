//! The cache that a thread has of a global pool.
//!
//! It lies in the pool itself, and a word of thread-local storage leads to it. A thread that uses its cache empties
//! a slot beside it meanwhile. So whatever calls the allocator in between (a hook, a signal handler) finds none, and
//! goes to the pool (design/adaptors.md `.cached.slot`); and another thread sees that it is in use (`.cached.rest`).

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Ordering, compiler_fence};
use tripoint_core::{ManualPool, Result};
use tripoint_pools::{Cache, Depot};

use crate::fork_gate::Inside;
use crate::thread_caches::{Kept, ThreadCaches};

/// A thread's word for its cache, in thread-local storage that is not dropped, so that
/// it may be asked at any time of the thread's life.
#[derive(Debug)]
pub struct ThreadCache<P: ManualPool + 'static> {
    /// The cache; null if there is none yet, or no longer.
    kept: AtomicPtr<Kept<P>>,
    /// Whether the thread has not asked for a cache yet, or only while there was no memory for it.
    is_new: Cell<bool>,
}

impl<P: ManualPool + 'static> ThreadCache<P> {
    /// No cache yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { kept: AtomicPtr::new(ptr::null_mut()), is_new: Cell::new(true) }
    }

    /// Passes the cache to `work`, if there is one that is not in use. `work` does no more than what a cache serves at once:
    /// [`Cache::alloc_cached`] and [`Cache::free_cached`].
    #[inline(always)]
    pub(crate) fn with_armed<R>(&self, work: impl FnOnce(&Cache<'static, P>) -> R) -> Option<R> {
        // SAFETY: these do nothing while another thread uses the cache, which has tripped it and looked at the slot.
        self.with(|kept| work(unsafe { kept.cache() }))
    }

    /// Passes the cache to `work`, if there is one that is not in use, and has other threads wait.
    /// `caches` are those of the pool.
    pub(crate) fn with_lock<R>(
        &self,
        caches: &ThreadCaches<P>,
        work: impl FnOnce(&Cache<'static, P>) -> R,
    ) -> Option<R> {
        // SAFETY: `make` put the cache, and this thread uses it only once at a time. `end` removes it from these caches.
        self.with(|kept| unsafe { kept.with_lock(caches, work) })
    }

    #[inline(always)]
    fn with<R>(&self, work: impl FnOnce(&Kept<P>) -> R) -> Option<R> {
        // SAFETY: what the word leads to was made by `make`, and is freed only by `end`, which makes the word null.
        let kept = unsafe { self.kept.load(Ordering::Relaxed).as_ref()? };
        let slot = kept.slot();
        let full = slot.get();
        if full.is_null() {
            return None;
        }
        // A handler of this thread sees the slot as it was stored; so does a thread that calls `HeavyBarrier::heavy`.
        slot.take(|| compiler_fence(Ordering::SeqCst));
        let result = work(kept);
        slot.restore(full);
        Some(result)
    }

    /// The thread's cache, for comparison; null if it has none.
    pub(crate) fn own(&self) -> *const Kept<P> {
        self.kept.load(Ordering::Relaxed)
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
        // SAFETY: fresh memory with room for a `Kept`, which is valid without its cache.
        unsafe { place.write(Kept::new(*depot.classes())) };
        // SAFETY: written above. Nothing moves or writes the descriptor while the cache borrows it, and `end` drops the
        // cache before it frees both.
        let kept: &'static Kept<P> = unsafe { place.as_ref() };
        match Cache::with_depot(depot, kept.descriptor()) {
            Ok(cache) => {
                // SAFETY: the memory is this function's, and nothing else uses the field.
                unsafe { Kept::put_cache(place, cache) };
                kept.slot().restore(place.as_ptr());
                self.kept.store(place.as_ptr(), Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                // SAFETY: allocated above with this layout; used by nothing.
                unsafe { depot.pool().free(place.cast(), Layout::new::<Kept<P>>()) };
                Err(error)
            }
        }
    }

    /// Returns all that the cache keeps, and its memory, to the pool. The thread gets no cache from then on.
    pub(crate) fn end(&self, caches: &ThreadCaches<P>) {
        self.is_new.set(false);
        let Some(kept) = NonNull::new(self.kept.swap(ptr::null_mut(), Ordering::Relaxed)) else { return };
        // SAFETY: made by `make`, and freed below.
        let slot = unsafe { kept.as_ref() }.slot();
        if slot.get().is_null() {
            return; // the thread ends in the middle of a use: what it keeps is lost
        }
        let _inside = Inside::enter();
        slot.take(|| compiler_fence(Ordering::SeqCst));
        // SAFETY: made by `make`; its slot is empty for good, so this thread does not use it.
        let cache = unsafe { caches.remove(kept) };
        let pool = cache.pool();
        drop(cache);
        // SAFETY: allocated in this pool by `make`, with this layout; the cache that borrowed the descriptor is dropped, and no
        // other thread finds it.
        unsafe { pool.free(kept.cast(), Layout::new::<Kept<P>>()) };
    }
}

impl<P: ManualPool + 'static> Default for ThreadCache<P> {
    fn default() -> Self {
        Self::new()
    }
}
