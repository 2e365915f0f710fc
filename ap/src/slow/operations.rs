//! What collectors do to a buffer that they know only by its node (design/core.md
//! `.registry.operations`).

use core::ptr::NonNull;

use tripoint_core::internal::{BufferMemory, BufferOperations, Owns, RegistryNode};
use tripoint_core::{AddrRange, BarrierPair, BufferClass, Check, CheckError, CheckLevel, ensure};

use crate::protocol::buffer::Buffer;
use crate::protocol::snapshot::BufferMode;
use crate::slow::descriptor::PoolBuffer;

impl<K: BufferClass> PoolBuffer<K> {
    /// What can be done to the descriptors of pools with this buffer class.
    pub(crate) const OPERATIONS: &'static BufferOperations = &BufferOperations {
        trip,
        flip_at_stop,
        class: class::<K>,
        check: check::<K>,
        init_offset: Buffer::INIT_OFFSET,
        class_offset: Self::CLASS_OFFSET,
    };
}

/// Returns the buffer of a node.
///
/// # Safety
/// - `node` is in the registry of a pool, which is not dropped while the buffer is borrowed.
unsafe fn buffer<'n>(node: NonNull<RegistryNode>) -> &'n Buffer {
    // SAFETY: only descriptors are in the registry of a pool. One begins with its buffer, stays valid
    // and in place as long as its pool, and this part of it is only ever borrowed shared.
    unsafe { node.cast().as_ref() }
}

/// # Safety
/// - That of [`BufferOperations::trip`].
unsafe fn trip(node: NonNull<RegistryNode>) {
    // SAFETY: the caller promises a node of a pool's registry.
    unsafe { buffer(node) }.trip();
}

/// # Safety
/// - That of [`BufferOperations::flip_at_stop`].
unsafe fn flip_at_stop(node: NonNull<RegistryNode>) -> Option<BufferMemory> {
    // SAFETY: the caller promises a node of a pool's registry.
    let buffer = unsafe { buffer(node) };
    // SAFETY: the caller promises that the owner does nothing meanwhile, and that all it did comes before
    // and all it does comes after. So no barrier is needed (`AtStop`).
    let _ = unsafe { buffer.flip(AtStop) };
    let now = buffer.snapshot()?;
    let memory = BufferMemory { base: now.base, scan_limit: now.scan_limit, limit: now.pool_limit };
    now.mode.contains(BufferMode::ATTACHED).then_some(memory)
}

/// # Safety
/// - That of [`BufferOperations::class`], of a registry of buffers of this class.
unsafe fn class<K: BufferClass>(node: NonNull<RegistryNode>) -> NonNull<()> {
    // SAFETY: a descriptor begins with its `PoolBuffer`, which is only ever borrowed shared.
    let buffer: &PoolBuffer<K> = unsafe { node.cast().as_ref() };
    NonNull::from(buffer.class()).cast()
}

/// # Safety
/// - That of [`BufferOperations::check`], of a registry of buffers of this class.
unsafe fn check<K: BufferClass>(
    node: NonNull<RegistryNode>,
    level: CheckLevel,
    owns: Owns<'_>,
) -> Result<(), CheckError> {
    // SAFETY: a descriptor begins with its `PoolBuffer`, which is only ever borrowed shared.
    let buffer: &PoolBuffer<K> = unsafe { node.cast().as_ref() };
    buffer.check(level)?;
    // Objects before `init` may have been freed, and their memory returned to the arena.
    let is_own = buffer.undisturbed(|| {
        let left = buffer.snapshot().and_then(|now| AddrRange::new(now.init, now.pool_limit));
        left.is_none_or(|left| left.is_empty() || owns(left))
    });
    ensure("Buffer", is_own.unwrap_or(true), "what a buffer has left is its pool's")
}

/// The barriers of a flip while the owner does not run: none.
#[derive(Clone, Copy, Debug)]
struct AtStop;

// SAFETY: the two sides of the promise never run at the same time: this pair is used only by
// `flip_at_stop`, whose caller promises so.
unsafe impl BarrierPair for AtStop {
    fn light(self) {}

    fn heavy(self) {}
}
