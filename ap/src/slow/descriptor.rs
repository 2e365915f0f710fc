//! The descriptor of an allocation point: first the part that threads share, then the
//! part that only the owner's slow path touches.
//!
//! An [`AllocationPoint`](crate::AllocationPoint) is nothing but a pointer to its
//! descriptor, so that the compiler keeps that pointer in a register through a
//! loop: the slow path is called with the descriptor and never sees the
//! allocation point itself (design/ap.md `.point.pointer`).

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, offset_of};
use core::ops::Deref;
use core::ptr::NonNull;

use tripoint_core::internal::{BufferOperations, Ordering, registry_of};
use tripoint_core::{BufferClass, BufferKind, Check, CheckError, CheckLevel, PoolClass, Result, ensure};

use crate::protocol::buffer::Buffer;

/// A buffer together with what its class keeps.
#[derive(Debug)]
#[repr(C)]
pub struct PoolBuffer<K: BufferClass> {
    buffer: Buffer,
    class: K,
}

impl<K: BufferClass> PoolBuffer<K> {
    /// How far behind the node what the class keeps is, for readers outside of the process.
    pub(crate) const CLASS_OFFSET: usize = offset_of!(Self, class);

    /// What the buffer's class keeps.
    #[must_use]
    pub const fn class(&self) -> &K {
        &self.class
    }
}

impl<K: BufferClass> Check for PoolBuffer<K> {
    /// As the buffer's own check, and that a segment has the buffer's ranks.
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.buffer.check(level)?;
        if level >= CheckLevel::Shallow {
            // The class is notified before the buffer gets memory and after it lost it: so the segment is that of the memory
            // that an undisturbed look finds.
            let agree = self.undisturbed(|| {
                let segment = self
                    .class
                    .segment_rank_set()
                    .filter(|_| !self.fields.init.load(Ordering::Acquire).is_null());
                segment.is_none_or(|ranks| ranks == self.rank_set())
            });
            ensure("Buffer", agree.unwrap_or(true), "a buffer has the ranks of its segment")?;
        }
        Ok(())
    }
}

impl<K: BufferClass> Deref for PoolBuffer<K> {
    type Target = Buffer;

    #[inline(always)]
    fn deref(&self) -> &Buffer {
        &self.buffer
    }
}

/// A descriptor in descriptor memory, with a slow part `S`. The shared part comes first, so
/// that a walk of the pool's registry finds it whatever `S` is.
#[repr(C)]
pub(crate) struct Descriptor<K: BufferClass, S> {
    pub(crate) shared: PoolBuffer<K>,
    /// Initialised while the descriptor has an owner, which alone reaches it.
    pub(crate) slow: UnsafeCell<MaybeUninit<S>>,
}

impl<K: BufferClass, S> Descriptor<K, S> {
    /// Claims a descriptor that an earlier allocation point left, or makes one.
    /// Its slow part is not initialised.
    ///
    /// `operations` are those of this buffer class.
    pub(crate) fn claim<P>(
        pool: &P,
        kind: BufferKind,
        class: K,
        operations: &'static BufferOperations,
    ) -> Result<NonNull<Self>>
    where
        P: PoolClass<Buffer = K>,
    {
        let header = pool.header();
        let layout = Layout::new::<Self>();
        if let Some(node) = registry_of(header).claim(layout) {
            let descriptor = node.cast::<Self>();
            // SAFETY: allocation points put only descriptors of their pool's buffer class
            // into its registry, node first. They are valid while the pool is. The shared
            // part is initialised for good, and is only ever borrowed shared.
            let shared = unsafe { &(*descriptor.as_ptr()).shared };
            shared.buffer.renew(kind, class.rank_set());
            // SAFETY: the caller is the owner, because the descriptor was claimed above.
            unsafe { shared.class.renew(class) };
            return Ok(descriptor);
        }
        let descriptor = header.alloc_descriptor(layout)?.cast::<Self>();
        let buffer = Buffer::with_layout(kind, class.rank_set(), layout, pool.min_align());
        let fresh =
            Self { shared: PoolBuffer { buffer, class }, slow: UnsafeCell::new(MaybeUninit::uninit()) };
        // SAFETY: this is fresh memory with the layout of a descriptor.
        unsafe { descriptor.write(fresh) };
        // SAFETY: only descriptors of buffers of this class are in the registry of a pool.
        unsafe { registry_of(header).set_operations(operations) };
        // SAFETY: the node is the descriptor's first field, is initialised and is in no list.
        // It stays in place, because descriptor memory is freed only when the pool's header is
        // dropped.
        unsafe { registry_of(header).push(descriptor.cast()) };
        Ok(descriptor)
    }

    /// Releases the descriptor, so that it may be claimed. Returns the slow part, for the caller
    /// to drop: its control may unwind.
    ///
    /// # Safety
    /// - The caller is the owner of `descriptor`, which is of `pool`, and does not use it
    ///   afterwards.
    pub(crate) unsafe fn release<P>(descriptor: NonNull<Self>, pool: &P) -> S
    where
        P: PoolClass<Buffer = K>,
    {
        let this = descriptor.as_ptr();
        // SAFETY: the slow part is initialised while the descriptor is claimed. Only the
        // owner reaches it, and does not read it again.
        let slow = unsafe { (*(*this).slow.get()).assume_init_read() };
        // SAFETY: a claimed descriptor is valid while the pool is borrowed, and its shared
        // part is only ever borrowed shared.
        let shared = unsafe { &(*this).shared };
        // SAFETY: the caller is the owner, and makes no call after this one.
        unsafe { shared.class.finish() };
        // SAFETY: `claim` took it from this list or put it there. The caller is the owner,
        // and does not use it afterwards.
        unsafe { registry_of(pool.header()).release(descriptor.cast()) };
        slow
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use core::ptr;

    use super::*;
    use crate::protocol::owner::Owner;
    use tripoint_core::{AddrRange, Block, Fill, RankSet, Segment, SegmentBuffer};

    /// (design/ap.md `.check.rank`)
    #[test]
    fn a_buffer_has_the_ranks_of_its_segment() {
        let buffer = Buffer::new(BufferKind::Mutator, RankSet::EXACT);
        let buffer = PoolBuffer { buffer, class: SegmentBuffer::new(RankSet::EXACT) };
        let found = || buffer.check(CheckLevel::Shallow).map_err(|error| error.rule);
        let segment = Segment::new(AddrRange::default(), RankSet::EXACT);
        // SAFETY: a block of no bytes asks nothing of its pointer.
        let block = unsafe { Block::new(NonNull::dangling(), 0) };
        let fill = Fill { block, preallocated: 0, segment: Some(NonNull::from(&segment)) };
        // SAFETY: the test is the owner, and the fill is of no memory.
        unsafe { buffer.class.attach(&fill) };
        // SAFETY: the buffer has no other owner.
        let mut owner = unsafe { Owner::new(&buffer) };
        let [base, limit] = [0x1000, 0x2000].map(ptr::without_provenance_mut);
        owner.attach(base, base, limit);
        assert_eq!(found(), Ok(()));
        buffer.set_rank_set(RankSet::WEAK);
        assert_eq!(found(), Err("a buffer has the ranks of its segment"));
        owner.detach();
        assert_eq!(found(), Ok(()), "a buffer without memory has no segment");
    }
}
