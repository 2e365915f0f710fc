//! The owner's half of a buffer: the accesses only one party may make.
//!
//! Trips are in `trip.rs` and flips in `flip.rs`, each with the owner's answer
//! beside the request.

use core::ptr;

use tripoint_core::BarrierPair;
use tripoint_core::internal::Ordering;

use crate::buffer::Buffer;

/// The right to allocate in a buffer. There is one for each buffer.
///
/// Allocation points hold it for their clients. It is public for models and for
/// those who build another front end; it follows no pointer it is given.
#[derive(Debug)]
pub struct Owner<'b> {
    pub(crate) buffer: &'b Buffer,
    /// How many trip requests the owner has handled.
    pub(crate) handled: usize,
}

impl<'b> Owner<'b> {
    /// Becomes the owner of a buffer.
    ///
    /// # Safety
    /// - `buffer` has no other owner while this one lives.
    #[must_use]
    pub unsafe fn new(buffer: &'b Buffer) -> Self {
        let handled = buffer.trip_requests.load(Ordering::Acquire);
        Self { buffer, handled }
    }

    /// The buffer.
    #[must_use]
    pub const fn buffer(&self) -> &'b Buffer {
        self.buffer
    }

    /// Where the next object goes; null where the buffer is reset.
    #[inline(always)]
    #[must_use]
    pub fn init(&self) -> *mut u8 {
        self.buffer.init()
    }

    /// Up to where the fast path may allocate.
    #[inline(always)]
    #[must_use]
    pub fn limit(&self) -> *mut u8 {
        self.buffer.limit()
    }

    /// Where the buffer's memory begins.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.buffer.base.load(Ordering::Relaxed)
    }

    /// Where the buffer's memory ends.
    #[must_use]
    pub fn pool_limit(&self) -> *mut u8 {
        self.buffer.pool_limit.load(Ordering::Relaxed)
    }

    /// Declares every object below `init` whole: commit without its test.
    #[inline(always)]
    pub fn declare(&mut self, init: *mut u8) {
        self.buffer.declare(init);
    }

    /// Commits the object from `object` to `end`: declares it, and tells whether
    /// it stands. The order of the two accesses, with the barrier between them,
    /// is the whole of the protocol (design/ap.md `.flip.order`).
    #[inline(always)]
    #[must_use]
    pub fn commit<B: BarrierPair>(&mut self, object: *mut u8, end: *mut u8, barrier: B) -> bool {
        self.buffer.commit(end, barrier) || self.commit_tripped(object, end)
    }

    /// In the ready state, detached: gives the buffer memory, of which what lies
    /// from `init` on counts as filled. It stays trapped until [`Owner::rearm`].
    pub fn attach(&mut self, base: *mut u8, init: *mut u8, pool_limit: *mut u8) {
        let (buffer, fresh) = (self.buffer, pool_limit.addr().wrapping_sub(init.addr()));
        buffer.transition(|| {
            self.set_words(base, init, pool_limit);
            buffer.fill_size.add(fresh as u64);
        });
    }

    /// In the ready state: takes the buffer's memory away, of which what lies from
    /// `init` on counts as emptied. It becomes reset.
    pub fn detach(&mut self) {
        let unused = self.pool_limit().addr().wrapping_sub(self.init().addr());
        let (buffer, null) = (self.buffer, ptr::null_mut());
        buffer.transition(|| {
            buffer.fields.limit.swap(null, Ordering::AcqRel);
            // This is a read-modify-write within the transition. So a flip either finds that
            // the memory is changing, and fixes nothing, or it is ended here (design/ap.md
            // `.flip.block`).
            buffer.init_at_flip.swap(null, Ordering::AcqRel);
            self.set_words(null, null, null);
            buffer.empty_size.add(unused as u64);
        });
    }

    fn set_words(&mut self, base: *mut u8, init: *mut u8, pool_limit: *mut u8) {
        self.buffer.base.store(base, Ordering::Release);
        self.buffer.pool_limit.store(pool_limit, Ordering::Release);
        self.buffer.fields.alloc.store(init, Ordering::Release);
        self.declare(init);
    }
}

/// The accesses of the fast path. Only the owner makes them; they are apart from
/// [`Owner`] so that an allocation point reaches them without a detour.
impl Buffer {
    #[inline(always)]
    pub(crate) fn init(&self) -> *mut u8 {
        self.fields.init.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn limit(&self) -> *mut u8 {
        self.fields.limit.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn declare(&self, init: *mut u8) {
        self.fields.init.store(init, Ordering::Release);
    }

    /// Bytes left, stops and trips apart.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.pool_limit.load(Ordering::Relaxed).addr() - self.init().addr()
    }

    /// Declares everything below `end` whole; false where the buffer is tripped.
    #[inline(always)]
    pub(crate) fn commit<B: BarrierPair>(&self, end: *mut u8, barrier: B) -> bool {
        self.declare(end);
        barrier.light();
        !self.limit().is_null()
    }
}
