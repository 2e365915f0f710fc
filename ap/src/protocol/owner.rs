//! The owner's half of a buffer: the accesses that only one thread makes.

use core::ptr;

use tripoint_core::aver;
use tripoint_core::internal::Ordering;

use crate::protocol::buffer::{Buffer, CHECKS};

/// The right to allocate in a buffer. Each buffer has one owner.
///
/// An allocation point holds it for its client. Models and tests use it by itself; it
/// follows none of the pointers that it gets.
#[derive(Debug)]
pub struct Owner<'b> {
    pub(crate) buffer: &'b Buffer,
    /// How many requests for trips the owner has observed.
    pub(crate) observed: usize,
}

impl<'b> Owner<'b> {
    /// Becomes the owner of a buffer.
    ///
    /// # Safety
    /// - `buffer` has no other owner while this one lives.
    #[must_use]
    pub unsafe fn new(buffer: &'b Buffer) -> Self {
        Self { buffer, observed: buffer.trips.requests() }
    }

    /// Returns the buffer that this owner allocates from.
    #[must_use]
    pub const fn buffer(&self) -> &'b Buffer {
        self.buffer
    }

    /// Where the next object begins; null while the buffer is reset.
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
    #[inline]
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.buffer.base.load(Ordering::Relaxed)
    }

    /// Where the buffer's memory ends.
    #[inline]
    #[must_use]
    pub fn pool_limit(&self) -> *mut u8 {
        self.buffer.pool_limit.load(Ordering::Relaxed)
    }

    /// Declares every object below `init` whole: a commit without its test.
    #[inline(always)]
    pub fn declare(&mut self, init: *mut u8) {
        self.buffer.declare(init);
    }

    /// In the ready state: declares that objects end at `init`, which they had reached
    /// before.
    ///
    /// `alloc` is stored first, so that no observer finds it below `init`.
    #[inline]
    pub(crate) fn retreat(&mut self, init: *mut u8) {
        if CHECKS {
            let (base, reached) = (self.base(), self.init());
            aver!(base <= init && init <= reached, "a retreat from {reached:p} to {init:p}, below {base:p}");
        }
        self.buffer.fields.alloc.store(init, Ordering::Release);
        self.declare(init);
    }

    /// In the ready state, detached: gives the buffer memory, of which the part from
    /// `init` on counts as filled. The buffer stays trapped until [`Owner::rearm`].
    pub fn attach(&mut self, base: *mut u8, init: *mut u8, pool_limit: *mut u8) {
        aver!(base <= init && init <= pool_limit, "memory {base:p}..{pool_limit:p}, allocated to {init:p}");
        if CHECKS {
            let attached = self.base();
            aver!(attached.is_null(), "memory at {base:p} for a buffer that has some at {attached:p}");
        }
        let (buffer, fresh) = (self.buffer, pool_limit.addr().wrapping_sub(init.addr()));
        buffer.transition(|| {
            self.set_words(base, init, pool_limit);
            buffer.fill_size.add_alone(fresh as u64);
        });
    }

    /// In the ready state: takes the buffer's memory away, of which the part from `init`
    /// on counts as emptied. The buffer becomes reset.
    pub fn detach(&mut self) {
        let unused = self.pool_limit().addr().wrapping_sub(self.init().addr());
        let (buffer, null) = (self.buffer, ptr::null_mut());
        buffer.transition(|| {
            // A read-modify-write carries on what a trip released, for the next `rearm` to acquire. It releases, as all stores
            // of a transition: an observer that finds null finds the count odd or later.
            buffer.fields.limit.swap(null, Ordering::Release);
            // This is a read-modify-write within the transition. So a flip either finds that
            // the memory is changing, and fixes nothing, or it is ended here (design/ap.md
            // `.flip.block`).
            buffer.init_at_flip.swap(null, Ordering::AcqRel);
            self.set_words(null, null, null);
            buffer.empty_size.add_alone(unused as u64);
        });
    }

    /// In the ready state, attached, in a buffer that is never flipped: exchanges memory that is all allocated for
    /// other memory of the same fill. The buffer stays trapped until [`Owner::rearm`].
    #[inline]
    pub fn advance(&mut self, base: *mut u8, pool_limit: *mut u8) {
        if CHECKS {
            let (init, end) = (self.init(), self.pool_limit());
            aver!(init == end && !end.is_null(), "an advance from {init:p}, in memory that ends at {end:p}");
        }
        let buffer = self.buffer;
        buffer.transition(|| {
            // Zero is a trip that is not observed yet, or what the last advance left: it stays.
            if !buffer.limit().is_null() {
                buffer.fields.limit.swap(ptr::null_mut(), Ordering::Release);
            }
            self.set_words(base, base, pool_limit);
        });
    }

    #[inline]
    fn set_words(&mut self, base: *mut u8, init: *mut u8, pool_limit: *mut u8) {
        self.buffer.base.store(base, Ordering::Release);
        self.buffer.pool_limit.store(pool_limit, Ordering::Release);
        self.buffer.fields.alloc.store(init, Ordering::Release);
        self.declare(init);
    }
}

#[cfg(all(test, debug_assertions, not(tripoint_loom)))]
mod tests {
    use super::*;
    use tripoint_core::{BufferKind, RankSet};

    fn attach(base: usize, init: usize, limit: usize, times: usize) {
        let buffer = Buffer::new(BufferKind::Mutator, RankSet::empty());
        // SAFETY: the buffer has no other owner.
        let mut owner = unsafe { Owner::new(&buffer) };
        let [base, init, limit] = [base, init, limit].map(ptr::without_provenance_mut);
        (0..times).for_each(|_| owner.attach(base, init, limit));
    }

    #[test]
    #[should_panic(expected = "memory 0x1000..0x2000, allocated to 0x2010")]
    fn memory_that_is_allocated_beyond_its_end_is_averted() {
        attach(0x1000, 0x2010, 0x2000, 1);
    }

    #[test]
    #[should_panic(expected = "for a buffer that has some at 0x1000")]
    fn a_second_attach_is_averted() {
        attach(0x1000, 0x1000, 0x2000, 2);
    }
}
