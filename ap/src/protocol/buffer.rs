//! The buffer descriptor: the words that an owner shares with all other threads.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `init` | the owner | any thread: objects are declared up to here; in a buffer that is never flipped, they are whole |
//! | `alloc` | the owner in slow paths; C clients in reserve too | any thread |
//! | `limit` | the owner to re-arm, any thread to trip (zero only) | the owner |
//! | `trips` | any thread, before it zeroes `limit` | the owner |
//! | `init_at_flip` | a flipper to flip, the owner to decide a flip or to go on from it | both |
//! | `base`, `pool_limit`, `fill_size`, `empty_size` | the owner, while `transitions` is odd (a pop adds to `empty_size` at any time) | any thread |
//!
//! All are atomics: descriptors are shared, and stay in memory as long as their
//! pool (design/core.md `.registry`).
//!
//! While `transitions` is even, these hold (`snapshot` checks them):
//!
//! ```text
//! base <= init <= alloc <= pool_limit           all zero if there is no memory
//! limit <= pool_limit                           zero if tripped
//! scan limit <= init
//! fill_size - empty_size = bytes allocated, and not popped, + pool_limit - init
//! ```

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr;

use tripoint_core::Lock;
use tripoint_core::internal::RegistryNode;
use tripoint_core::internal::Signature;
use tripoint_core::internal::Trips;
use tripoint_core::internal::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use tripoint_core::{Addr, BufferKind, Counter, RankSet};

/// Whether transitions look at shared words to check them: in debug builds. Models do not,
/// because each look would multiply their executions.
pub(crate) const CHECKS: bool = cfg!(all(debug_assertions, not(any(tripoint_loom, tripoint_shuttle))));

/// What the signature of a live buffer holds.
pub(crate) const SIGNATURE: u32 = 0x7290_B0FF;

/// The value of `init_at_flip` between the start of a flip and its decision.
/// No object is at address 1.
pub(crate) const UNDECIDED: *mut u8 = ptr::without_provenance_mut(1);

/// The words that the fast path touches, in the order that C clients know.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ApFields {
    pub(crate) init: AtomicPtr<u8>,
    pub(crate) alloc: AtomicPtr<u8>,
    pub(crate) limit: AtomicPtr<u8>,
}

/// A buffer: memory taken from a pool in advance, and the words by which threads agree on
/// its use.
///
/// [`AllocationPoint::create`](crate::AllocationPoint::create) makes one, and the allocation
/// point owns it. Threads that trip, flip or observe the buffer share it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Buffer {
    node: RegistryNode,
    pub(crate) fields: ApFields,
    pub(crate) trips: Trips,
    pub(crate) init_at_flip: AtomicPtr<u8>,
    pub(crate) flip_lock: Lock<()>,
    pub(crate) base: AtomicPtr<u8>,
    pub(crate) pool_limit: AtomicPtr<u8>,
    /// Odd while `base`, `init`, `pool_limit` and the sizes change together.
    pub(crate) transitions: AtomicUsize,
    pub(crate) fill_size: Counter,
    pub(crate) empty_size: Counter,
    /// One for an internal buffer, zero for a mutator's.
    kind: AtomicU8,
    rank_set: AtomicU8,
    pub(crate) signature: Signature,
    /// The power of two that the pool aligns all objects to.
    align_exponent: u8,
}

// The registry's nodes are cast to descriptors.
const _: () = assert!(offset_of!(Buffer, node) == 0);

impl Buffer {
    /// How far behind its node `init` is, for readers outside of the process.
    pub(crate) const INIT_OFFSET: usize = offset_of!(Self, fields) + offset_of!(ApFields, init);

    /// Returns a reset buffer that belongs to no pool.
    pub(crate) fn new(kind: BufferKind, rank_set: RankSet) -> Self {
        Self::with_layout(kind, rank_set, Layout::new::<Self>(), 1)
    }

    /// Returns a reset buffer for the beginning of a descriptor of this layout, in a pool that aligns objects to `align`.
    pub(crate) fn with_layout(kind: BufferKind, rank_set: RankSet, layout: Layout, align: usize) -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self {
            node: RegistryNode::new(layout),
            fields: ApFields { init: null(), alloc: null(), limit: null() },
            trips: Trips::new(),
            init_at_flip: null(),
            flip_lock: Lock::new(()),
            base: null(),
            pool_limit: null(),
            transitions: AtomicUsize::new(0),
            fill_size: Counter::new(),
            empty_size: Counter::new(),
            kind: AtomicU8::new(kind as u8),
            rank_set: AtomicU8::new(rank_set.bits()),
            signature: Signature::new(SIGNATURE),
            align_exponent: align.trailing_zeros() as u8,
        }
    }

    /// Makes a descriptor whose last owner released it ready for the next.
    pub(crate) fn renew(&self, kind: BufferKind, rank_set: RankSet) {
        self.kind.store(kind as u8, Ordering::Relaxed);
        self.set_rank_set(rank_set);
        // An observer that reads one size of the last owner and one of this owner then
        // knows that they do not agree.
        self.transition(|| {
            self.empty_size.sub(self.empty_size.get());
            self.fill_size.sub(self.fill_size.get());
        });
    }

    /// The owner: changes words that observers see changed together or not at all.
    #[inline]
    pub(crate) fn transition(&self, change: impl FnOnce()) {
        // Only the owner writes the count. A thread that finds a word that `change` stored with release order finds the
        // count odd or later. From an odd count no thread concludes anything of what came before.
        let before = self.transitions.load(Ordering::Relaxed);
        self.transitions.store(before.wrapping_add(1), Ordering::Relaxed);
        change();
        self.transitions.store(before.wrapping_add(2), Ordering::Release);
    }

    /// The owner: stores the ranks that the buffer's class states.
    pub(crate) fn set_rank_set(&self, rank_set: RankSet) {
        self.rank_set.store(rank_set.bits(), Ordering::Release);
    }

    /// What events call the buffer: its address.
    #[must_use]
    pub fn id(&self) -> Addr {
        Addr::of(self)
    }

    /// Whose allocation the buffer serves: a mutator's, or the pool's own.
    #[must_use]
    pub fn kind(&self) -> BufferKind {
        if self.kind.load(Ordering::Relaxed) == BufferKind::Internal as u8 {
            BufferKind::Internal
        } else {
            BufferKind::Mutator
        }
    }

    /// The ranks of the references in the buffer's objects.
    #[must_use]
    pub fn rank_set(&self) -> RankSet {
        RankSet::from_bits_truncate(self.rank_set.load(Ordering::Acquire))
    }

    /// Bytes that fills have put into the buffer (MPS: design.mps.buffer.count.fillsize).
    #[inline]
    #[must_use]
    pub fn fill_size(&self) -> u64 {
        self.fill_size.get()
    }

    /// Bytes that the buffer returned to its pool, unused or popped (MPS:
    /// design.mps.buffer.count.emptysize).
    #[inline]
    #[must_use]
    pub fn empty_size(&self) -> u64 {
        self.empty_size.get()
    }

    /// The alignment of all objects of the pool.
    pub(crate) const fn align(&self) -> usize {
        1 << self.align_exponent
    }

    /// Bytes left, whatever stops or trips are pending.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.pool_limit.load(Ordering::Relaxed).addr() - self.init().addr()
    }
}

/// Returns a reset buffer that belongs to no pool, for models and tests that play its owner.
#[must_use]
pub fn buffer_without_pool(kind: BufferKind, rank_set: RankSet) -> Buffer {
    Buffer::new(kind, rank_set)
}

/// The accesses of the fast path, which only the owner makes.
impl Buffer {
    /// Where the next object begins; null while the buffer is reset.
    #[inline(always)]
    pub(crate) fn init(&self) -> *mut u8 {
        self.fields.init.load(Ordering::Relaxed)
    }

    /// Up to where the fast path may allocate.
    #[inline(always)]
    pub(crate) fn limit(&self) -> *mut u8 {
        self.fields.limit.load(Ordering::Relaxed)
    }

    /// Declares every object below `init` whole.
    #[inline(always)]
    pub(crate) fn declare(&self, init: *mut u8) {
        self.fields.init.store(init, Ordering::Release);
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn fast_path_words_share_a_cache_line() {
        let span = memoffset::span_of!(Buffer, fields);
        assert_eq!(span.start / 64, (span.end - 1) / 64);
    }

    #[test]
    fn a_descriptor_starts_anew_with_its_next_owner() {
        let buffer = Buffer::new(BufferKind::Mutator, RankSet::EXACT);
        buffer.fill_size.add(300);
        buffer.empty_size.add(200);
        buffer.renew(BufferKind::Internal, RankSet::WEAK);
        assert_eq!((buffer.kind(), buffer.rank_set()), (BufferKind::Internal, RankSet::WEAK));
        assert_eq!((buffer.fill_size(), buffer.empty_size()), (0, 0));
    }
}
