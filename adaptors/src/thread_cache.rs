//! The cache that a thread has of a global pool.
//!
//! It lies in the pool itself, and a word of thread-local storage leads to it. A thread that uses its cache takes
//! it out of that word meanwhile. So whatever calls the allocator in between (a hook, a signal handler) finds none, and
//! goes to the pool (design/adaptors.md `.cached.slot`); and another thread sees that it is in use (`.cached.rest`).

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

use tripoint_core::internal::{Ordering, OwnerSlot, compiler_fence};
use tripoint_core::{ManualPool, Result};
use tripoint_pools::{Cache, Depot};

use crate::fork_gate::Inside;
use crate::thread_caches::{Kept, ThreadCaches};

/// A thread's word for its cache, in thread-local storage that is not dropped, so that
/// it may be asked at any time of the thread's life.
#[derive(Debug)]
pub struct ThreadCache<P: ManualPool + 'static> {
    /// The cache; empty if there is none yet, or no longer, or while it is in use.
    slot: OwnerSlot<Kept<P>>,
    /// Whether the thread has not asked for a cache yet, or only while there was no memory for it.
    is_new: Cell<bool>,
}

impl<P: ManualPool + 'static> ThreadCache<P> {
    /// No cache yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { slot: OwnerSlot::empty(), is_new: Cell::new(true) }
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
        let place = self.slot.get();
        // SAFETY: what the slot leads to was made by `make`, and is freed only by `end`, which empties the slot.
        let kept = unsafe { place.as_ref()? };
        // A handler of this thread sees the slot as it was stored; so does a thread that calls `Membarrier::heavy`.
        self.slot.take(|| compiler_fence(Ordering::SeqCst));
        let result = work(kept);
        self.slot.restore(place);
        Some(result)
    }

    /// Whose cache this is, for comparison; null if it has none, or while it is in use.
    pub(crate) fn own(&self) -> *const Kept<P> {
        self.slot.get()
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
        unsafe { place.write(Kept::new(*depot.classes(), NonNull::from(&self.slot))) };
        // SAFETY: written above. Nothing moves or writes the descriptor while the cache borrows it, and `end` drops the
        // cache before it frees both.
        let kept: &'static Kept<P> = unsafe { place.as_ref() };
        match Cache::with_depot(depot, kept.descriptor()) {
            Ok(cache) => {
                // SAFETY: the memory is this function's, and nothing else uses the field.
                unsafe { Kept::put_cache(place, cache) };
                self.slot.restore(place.as_ptr());
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
        let Some(kept) = NonNull::new(self.slot.get()) else { return };
        let _inside = Inside::enter();
        self.slot.take(|| compiler_fence(Ordering::SeqCst));
        // SAFETY: made by `make`; taken out of the slot for good, so this thread does not use it.
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
