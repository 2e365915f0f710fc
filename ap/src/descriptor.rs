//! The descriptor of an allocation point: what is shared, and behind it what only
//! the owner's slow paths touch.
//!
//! An [`AllocationPoint`](crate::AllocationPoint) is nothing but a pointer to its
//! descriptor, so that the compiler keeps that pointer in a register through a
//! loop: the slow paths are called with the descriptor and never see the
//! allocation point itself (design/ap.md `.point.pointer`).

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;

use tripoint_core::{BufferClass, BufferKind, PoolClass, Result};

use crate::buffer::Buffer;
use crate::fill::SlowPath;

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

/// A descriptor in control memory. The shared part comes first, so that whoever
/// walks the pool's registry finds it whatever `C` is.
#[repr(C)]
pub(crate) struct Descriptor<'pool, P: PoolClass, C> {
    pub(crate) shared: PoolBuffer<P::Buffer>,
    /// Initialised while the descriptor has an owner; only the owner looks.
    pub(crate) slow: UnsafeCell<MaybeUninit<SlowPath<'pool, P, C>>>,
}

impl<'pool, P: PoolClass, C> Descriptor<'pool, P, C> {
    /// Claims a descriptor that an earlier allocation point left, or makes one.
    /// Its slow part is not initialised.
    pub(crate) fn claim(pool: &'pool P, kind: BufferKind, class: P::Buffer) -> Result<NonNull<Self>> {
        let header = pool.header();
        let layout = Layout::new::<Self>();
        if let Some(node) = header.registry().claim(layout) {
            let descriptor = node.cast::<Self>();
            // SAFETY: allocation points put only descriptors of their pool's buffer class
            // into registries, node first. They are valid while the pool is. The shared
            // part is initialised for good, and is only ever borrowed shared.
            let shared = unsafe { &(*descriptor.as_ptr()).shared };
            shared.buffer.renew(kind, class.rank_set());
            // SAFETY: claimed above, so the caller is the owner.
            unsafe { shared.class.renew(class) };
            return Ok(descriptor);
        }
        let descriptor = header.alloc_descriptor(layout)?.cast::<Self>();
        let buffer = Buffer::with_layout(kind, class.rank_set(), layout);
        let fresh =
            Self { shared: PoolBuffer { buffer, class }, slow: UnsafeCell::new(MaybeUninit::uninit()) };
        // SAFETY: fresh memory with the layout of a descriptor.
        unsafe { descriptor.write(fresh) };
        // SAFETY: its node is the first field, initialised and in no list; control
        // memory is freed only when the pool's header is dropped.
        unsafe { header.registry().push(descriptor.cast()) };
        Ok(descriptor)
    }

    /// Releases the descriptor, so that it may be claimed. Returns the slow part, which may
    /// still have something to report.
    ///
    /// # Safety
    /// - The caller is the owner of `descriptor`, which is of `pool`, and does not use it
    ///   afterwards.
    pub(crate) unsafe fn release(descriptor: NonNull<Self>, pool: &'pool P) -> SlowPath<'pool, P, C> {
        let this = descriptor.as_ptr();
        // SAFETY: the slow part is initialised while the descriptor is claimed. Only the
        // owner reaches it, and does not read it again.
        let slow = unsafe { (*(*this).slow.get()).assume_init_read() };
        // SAFETY: the shared part is only ever borrowed shared.
        let shared = unsafe { &(*this).shared };
        // SAFETY: the caller is the owner, and makes no call after this one.
        unsafe { shared.class.finish() };
        // SAFETY: `claim` took it from this list or put it there. The caller is the owner,
        // and does not use it afterwards.
        unsafe { pool.header().registry().release(descriptor.cast()) };
        slow
    }
}
