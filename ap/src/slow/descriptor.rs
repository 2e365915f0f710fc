//! The descriptor of an allocation point: first the part that threads share, then the
//! part that only the owner's slow path touches.
//!
//! An [`AllocationPoint`](crate::AllocationPoint) is nothing but a pointer to its
//! descriptor, so that the compiler keeps that pointer in a register through a
//! loop: the slow path is called with the descriptor and never sees the
//! allocation point itself (design/ap.md `.point.pointer`).

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;

use tripoint_core::internal::{BufferOperations, registry_of};
use tripoint_core::{BufferClass, BufferKind, PoolClass, Result};

use crate::protocol::buffer::Buffer;

/// A buffer together with what its class keeps.
#[derive(Debug)]
#[repr(C)]
pub struct PoolBuffer<K: BufferClass> {
    buffer: Buffer,
    class: K,
}

impl<K: BufferClass> PoolBuffer<K> {
    /// What the buffer's class keeps.
    #[must_use]
    pub const fn class(&self) -> &K {
        &self.class
    }
}

impl<K: BufferClass> Deref for PoolBuffer<K> {
    type Target = Buffer;

    #[inline(always)]
    fn deref(&self) -> &Buffer {
        &self.buffer
    }
}

/// A descriptor in control memory, with a slow part `S`. The shared part comes first, so
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
        let buffer = Buffer::with_layout(kind, class.rank_set(), layout);
        let fresh =
            Self { shared: PoolBuffer { buffer, class }, slow: UnsafeCell::new(MaybeUninit::uninit()) };
        // SAFETY: this is fresh memory with the layout of a descriptor.
        unsafe { descriptor.write(fresh) };
        // SAFETY: only descriptors of buffers of this class are in the registry of a pool.
        unsafe { registry_of(header).set_operations(operations) };
        // SAFETY: the node is the descriptor's first field, is initialised and is in no list.
        // It stays in place, because control memory is freed only when the pool's header is
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
