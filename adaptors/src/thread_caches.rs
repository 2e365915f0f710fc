//! The caches of all threads of a global pool, so that one thread can return what another keeps and does not use
//! (design/adaptors.md `.cached.rest`).

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering, OwnerSlot};
use tripoint_core::{BarrierPair, Lock, ManualPool, Result};
use tripoint_pools::{Cache, CacheClasses, CacheDescriptor};

use crate::fork_gate::{Inside, forks};
use crate::heavy_barrier::HeavyBarrier;

/// The caches that are looked at in one pass of the gate.
const PASS: usize = 64;

/// The caches that are looked at when a thread gets one.
const LOOKS_FOR_NEW: usize = 8;

/// A thread's cache, and the descriptor that it borrows, at an address that does not change.
///
/// It lies in the pool, and is freed only by its thread, when that ends. If the thread could not do that, it stays, and can still be
/// looked at: no other thread looks into thread-local storage.
///
/// The thread uses the cache while its slot is empty: what the cache serves at once without the lock, all else with it.
/// Another thread uses it with the lock, after it has tripped it and found the thread at rest.
#[derive(Debug)]
pub(crate) struct Kept<P: ManualPool + 'static> {
    cache: MaybeUninit<Cache<'static, P>>,
    descriptor: CacheDescriptor,
    lock: Lock<()>,
    /// Leads to this itself; empty while the thread uses the cache, and before it has one.
    slot: OwnerSlot<Self>,
    /// How many forks there had been when the thread last used it with the lock: after another it may be a thread that the
    /// child does not have.
    forks: AtomicUsize,
    /// How often the thread used it with the lock.
    uses: AtomicUsize,
    /// Whether it is to return what it keeps, although its thread may use it.
    is_wanted: AtomicBool,
    /// What `uses` was at the last look, which also made each class ask for the lock at its next use.
    seen: Cell<usize>,
    /// Whether it is in the queue: not if it returned all at the last look, and was not used with the lock since. Under the lock.
    is_queued: Cell<bool>,
    next: Cell<Option<NonNull<Self>>>,
    previous: Cell<Option<NonNull<Self>>>,
}

impl<P: ManualPool + 'static> Kept<P> {
    /// What a thread is to keep, still without its cache.
    pub(crate) fn new(classes: CacheClasses) -> Self {
        Self {
            cache: MaybeUninit::uninit(),
            descriptor: CacheDescriptor::new(classes),
            lock: Lock::new(()),
            slot: OwnerSlot::empty(),
            forks: AtomicUsize::new(forks()),
            uses: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            seen: Cell::new(0),
            is_queued: Cell::new(false),
            next: Cell::new(None),
            previous: Cell::new(None),
        }
    }

    /// The descriptor, for the cache that is put beside it.
    pub(crate) const fn descriptor(&self) -> &CacheDescriptor {
        &self.descriptor
    }

    /// Puts the cache beside its descriptor.
    ///
    /// # Safety
    /// - `kept` is valid for writes of this field, and nothing else uses the field.
    pub(crate) unsafe fn put_cache(kept: NonNull<Self>, cache: Cache<'static, P>) {
        // SAFETY: as the caller promises.
        unsafe { (&raw mut (*kept.as_ptr()).cache).write(MaybeUninit::new(cache)) };
    }

    /// The word by which others see whether the thread uses the cache.
    #[inline(always)]
    pub(crate) const fn slot(&self) -> &OwnerSlot<Self> {
        &self.slot
    }

    /// The cache.
    ///
    /// # Safety
    /// - It was put.
    #[inline(always)]
    pub(crate) const unsafe fn cache(&self) -> &Cache<'static, P> {
        // SAFETY: as the caller promises.
        unsafe { self.cache.assume_init_ref() }
    }

    /// Passes the cache to `work`, while no other thread uses it. For the thread that has it, and whose slot is empty.
    ///
    /// # Safety
    /// - The cache was put. The caller's thread has it, and uses it in no other place. It is to be
    ///   [removed](ThreadCaches::remove) from `caches`, and from no other.
    pub(crate) unsafe fn with_lock<R>(
        &self,
        caches: &ThreadCaches<P>,
        work: impl FnOnce(&Cache<'static, P>) -> R,
    ) -> R {
        let _others_wait = self.lock.lock();
        if !self.is_queued.replace(true) {
            // SAFETY: it is in no queue, and stays valid until it is removed.
            unsafe { caches.queue.lock().add(NonNull::from(self)) };
        }
        self.forks.store(forks(), Ordering::Relaxed);
        self.uses.store(self.uses.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        // SAFETY: it was put.
        work(unsafe { self.cache() })
    }
}

/// The caches of a pool's threads that may keep something, in the order in which they are looked at.
#[derive(Debug)]
pub(crate) struct ThreadCaches<P: ManualPool + 'static> {
    queue: Lock<Queue<P>>,
    /// One thread at a time, so that no two wait for each other's caches.
    flushing: Lock<()>,
    /// What the pool had when idle caches were last looked for.
    looked_at: AtomicUsize,
}

#[derive(Debug)]
struct Queue<P: ManualPool + 'static> {
    first: Option<NonNull<Kept<P>>>,
    last: Option<NonNull<Kept<P>>>,
    count: usize,
}

// SAFETY: what it leads to is used by this thread or that, in turn, as `Kept` says; its links under the lock of the queue.
unsafe impl<P: ManualPool + Sync> Send for Queue<P> {}

impl<P: ManualPool> Queue<P> {
    /// # Safety
    /// - It is in no queue, and stays valid until it is [removed](Self::remove).
    unsafe fn add(&mut self, kept: NonNull<Kept<P>>) {
        // SAFETY: valid, as are all in the queue; links are used only under the lock of this queue.
        unsafe {
            kept.as_ref().next.set(None);
            kept.as_ref().previous.set(self.last);
            match self.last {
                Some(last) => last.as_ref().next.set(Some(kept)),
                None => self.first = Some(kept),
            }
        }
        self.last = Some(kept);
        self.count += 1;
    }

    /// # Safety
    /// - It is in this queue.
    unsafe fn remove(&mut self, kept: NonNull<Kept<P>>) {
        // SAFETY: valid, as are all in the queue; links are used only under the lock of this queue.
        unsafe {
            let (next, previous) = (kept.as_ref().next.get(), kept.as_ref().previous.get());
            match previous {
                Some(previous) => previous.as_ref().next.set(next),
                None => self.first = next,
            }
            match next {
                Some(next) => next.as_ref().previous.set(previous),
                None => self.last = previous,
            }
        }
        self.count -= 1;
    }

    fn for_each(&self, mut work: impl FnMut(&Kept<P>)) {
        let mut next = self.first;
        while let Some(kept) = next {
            // SAFETY: valid, as are all in the queue; links are used only under the lock of this queue.
            let kept = unsafe { kept.as_ref() };
            work(kept);
            next = kept.next.get();
        }
    }
}

impl<P: ManualPool> ThreadCaches<P> {
    /// No thread has a cache yet.
    pub(crate) const fn new() -> Self {
        let queue = Lock::new(Queue { first: None, last: None, count: 0 });
        Self { queue, flushing: Lock::new(()), looked_at: AtomicUsize::new(0) }
    }

    /// Removes the cache of a thread, and takes it out.
    ///
    /// # Safety
    /// - It was passed with its cache to [`Kept::with_lock`] with these `caches` or none, its slot is empty for good, and the
    ///   caller's thread does not use it.
    pub(crate) unsafe fn remove(&self, kept: NonNull<Kept<P>>) -> Cache<'static, P> {
        // SAFETY: it is valid, and the thread's own.
        let kept_ref = unsafe { kept.as_ref() };
        let others_wait = kept_ref.lock.lock();
        if kept_ref.is_queued.get() {
            // SAFETY: it is in the queue.
            unsafe { self.queue.lock().remove(kept) };
        }
        drop(others_wait);
        // SAFETY: it was put, and no other thread finds it any more; it is read once.
        unsafe { kept_ref.cache.assume_init_read() }
    }

    /// Has idle threads return what they keep if the pool's memory, of which there are `total` bytes now, has become `step`
    /// bytes more or less since this was last done: before a program grows, what no thread uses is to serve it.
    pub(crate) fn look_when_changed(&self, total: usize, step: usize, own: *const Kept<P>) {
        let looked_at = self.looked_at.load(Ordering::Relaxed);
        if total.abs_diff(looked_at) < step || Inside::is_inside() {
            return;
        }
        let exchanged =
            self.looked_at.compare_exchange(looked_at, total, Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() && total > looked_at {
            self.try_look(PASS, own);
        }
    }

    /// The same, of a few threads, when another thread has got a cache: so there are looks as there are caches.
    pub(crate) fn look_for_new(&self, own: *const Kept<P>) {
        if !Inside::is_inside() {
            self.try_look(LOOKS_FOR_NEW, own);
        }
    }

    /// Looks at the next `most` caches, unless another thread looks.
    fn try_look(&self, most: usize, own: *const Kept<P>) {
        let _inside = Inside::enter();
        if let Some(_others_go_on) = self.flushing.try_lock() {
            self.look_at_some(most, own);
        }
    }

    /// Has the caches of all threads return to the pool, or to slabs, what they keep: those of threads at rest at once, the
    /// others at the next call. Nothing is done for that of the caller's thread, `own`, nor if a hook or a handler calls this.
    pub(crate) fn flush(&self, own: *const Kept<P>) {
        if Inside::is_inside() {
            return;
        }
        self.for_each_other(own, |kept| {
            kept.is_wanted.store(true, Ordering::Relaxed);
            kept.descriptor.trip();
        });
        self.look_at_all(own);
    }

    /// As [`flush`](Self::flush), if the caches of other threads, each of which keeps at most `most` bytes, keep `size` or more.
    pub(crate) fn flush_for(&self, size: usize, most: usize, own: *const Kept<P>) {
        if self.count().saturating_mul(most) < size {
            return;
        }
        let mut cached = 0_usize;
        self.for_each_other(own, |kept| cached = cached.saturating_add(kept.descriptor.cached()));
        if cached >= size {
            self.flush(own);
        }
    }

    fn for_each_other(&self, own: *const Kept<P>, mut work: impl FnMut(&Kept<P>)) {
        let _inside = Inside::enter();
        self.queue.lock().for_each(|kept| {
            if !ptr::eq(kept, own) {
                work(kept);
            }
        });
    }

    /// Has idle threads return what they keep, as [`flush`](Self::flush) has all.
    pub(crate) fn flush_idle(&self, own: *const Kept<P>) {
        if !Inside::is_inside() {
            self.look_at_all(own);
        }
    }

    /// How many caches there are to look at.
    fn count(&self) -> usize {
        let _inside = Inside::enter();
        self.queue.lock().count
    }

    fn look_at_all(&self, own: *const Kept<P>) {
        let mut left = self.count();
        while left != 0 {
            let next = left.min(PASS);
            let _inside = Inside::enter();
            let _others_wait = self.flushing.lock();
            self.look_at_some(next, own);
            left -= next;
        }
    }

    /// Looks at the next `most` caches, or at all, each once. The caller is inside, so that a fork waits for it, and a child
    /// finds no lock taken; and is the only one.
    fn look_at_some(&self, most: usize, own: *const Kept<P>) {
        let count = self.queue.lock().count;
        let mut barrier = None;
        for _ in 0..count.min(most) {
            self.look_at_next(own, || *barrier.get_or_insert_with(HeavyBarrier::register));
        }
    }

    /// Looks at the next cache, unless it is `own` or its thread has the lock.
    fn look_at_next(&self, own: *const Kept<P>, barrier: impl FnOnce() -> Result<HeavyBarrier>) {
        let mut queue = self.queue.lock();
        let Some(kept) = queue.first else { return };
        // SAFETY: it is in the queue, and so valid; it stays so until it is removed, for which its lock is taken.
        let kept_ref = unsafe {
            queue.remove(kept);
            queue.add(kept);
            kept.as_ref()
        };
        if !ptr::eq(kept_ref, own)
            && let Some(_owner_waits) = kept_ref.lock.try_lock()
        {
            drop(queue);
            if kept_ref.look(barrier) {
                kept_ref.is_queued.set(false);
                // SAFETY: it is in the queue: who takes it out has its lock.
                unsafe { self.queue.lock().remove(kept) };
            }
        }
    }
}

impl<P: ManualPool> Kept<P> {
    /// Has the cache return what it keeps if that is wanted, or if its thread did not use it since the last look; unless the
    /// thread is using it now. Returns whether it did. The caller has the lock, and is another thread.
    fn look(&self, barrier: impl FnOnce() -> Result<HeavyBarrier>) -> bool {
        if self.forks.load(Ordering::Relaxed) != forks() {
            return true;
        }
        let uses = self.uses.load(Ordering::Relaxed);
        let is_idle = self.seen.replace(uses) == uses;
        if !self.is_wanted.swap(false, Ordering::Relaxed) && !is_idle {
            // So that its next use is counted.
            self.descriptor.disarm();
            return false;
        }
        // Asked for only now, because it interrupts other threads.
        let Ok(barrier) = barrier() else { return false };
        self.descriptor.trip();
        barrier.heavy();
        let is_at_rest = self.slot.is_at_rest();
        if is_at_rest {
            // SAFETY: it was put before this was first in the queue. Its thread finds each class tripped, and waits for the lock.
            unsafe { self.cache() }.flush();
        }
        is_at_rest
    }
}
