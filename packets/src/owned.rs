//! A packet that keeps its pool (design/packets.md `.owned`).

extern crate alloc;

use alloc::sync::Arc;
use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::slice;

use tripoint_core::Arena;

use crate::held::Held;
use crate::{PacketBox, PacketPool};

/// A packet that owns a share of its pool, and so borrows nothing: it can be moved to any thread, be held across an `.await`, and
/// be handed to what wants `'static`. The pool is there until the last of them is dropped.
///
/// It dereferences to its data. It costs a count of references more than a [`PacketBox`], and dropping it gives the unit back
/// under the pool's lock. Packets of a pool that is never dropped need none of this: their boxes are `'static`.
///
/// With the feature `bytes` it becomes a `bytes::Bytes` without a copy of its data.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let memory = Box::leak(Box::new_uninit_slice(256 << 10));
/// # let arena = ClientArena::create(memory, ClientArenaOptions::default())?;
/// use std::sync::Arc;
///
/// use tripoint_packets::{PacketPool, PacketPoolOptions};
///
/// let pool = PacketPool::<_, 2048>::create(arena, PacketPoolOptions { count: 64, ..Default::default() })?;
/// let pool = Arc::new(pool);
/// let mut packet = pool.take().expect("a free unit");
/// packet.extend_from_slice(b"data").expect("there is room");
/// let packet = packet.into_owned(&pool).expect("a packet of this pool");
///
/// drop(pool); // the packet has its share
/// let length = std::thread::spawn(move || packet.len()).join().unwrap();
/// assert_eq!(length, 4);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct OwnedPacket<A: Arena, const SIZE: usize> {
    pool: Arc<PacketPool<A, SIZE>>,
    /// The unit is the packet's, and the data lie in it.
    held: Held,
}

impl<A: Arena, const SIZE: usize> OwnedPacket<A, SIZE> {
    /// Gives its share of the pool up for a borrow of it.
    ///
    /// # Errors
    /// The packet, if it is of another pool.
    pub fn into_box(self, pool: &PacketPool<A, SIZE>) -> Result<PacketBox<'_, SIZE>, Self> {
        if !ptr::eq(&raw const *self.pool, pool) {
            return Err(self);
        }
        let Held { number, start, length } = self.held;
        let mut packet = mem::ManuallyDrop::new(self);
        // SAFETY: the packet is not dropped and not used any more, so its share of the pool is read once.
        drop(unsafe { ptr::read(&raw mut packet.pool) });
        // SAFETY: the unit of this pool was the packet's, which gave it up; the data lie in it.
        Ok(unsafe { PacketBox::new(&pool.shared, number, start, length) })
    }
}

impl<'p, const SIZE: usize> PacketBox<'p, SIZE> {
    /// Has the packet own a share of its pool in place of its borrow of it.
    ///
    /// # Errors
    /// The packet, if it is of another pool.
    pub fn into_owned<A: Arena>(self, pool: &Arc<PacketPool<A, SIZE>>) -> Result<OwnedPacket<A, SIZE>, Self> {
        if !ptr::eq(self.pool(), &raw const pool.shared) {
            return Err(self);
        }
        Ok(OwnedPacket { pool: Arc::clone(pool), held: self.into_held() })
    }
}

impl<A: Arena, const SIZE: usize> Deref for OwnedPacket<A, SIZE> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the data lie in a unit of the pool, which wrote to it when it was created. The unit is the packet's, which is
        // borrowed.
        unsafe { slice::from_raw_parts(self.pool.shared.data(self.held).as_ptr(), self.held.length as usize) }
    }
}

impl<A: Arena, const SIZE: usize> DerefMut for OwnedPacket<A, SIZE> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the data lie in a unit of the pool, which wrote to it when it was created. The unit is the packet's, which is
        // borrowed exclusively.
        unsafe {
            slice::from_raw_parts_mut(self.pool.shared.data(self.held).as_ptr(), self.held.length as usize)
        }
    }
}

impl<A: Arena, const SIZE: usize> AsRef<[u8]> for OwnedPacket<A, SIZE> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<A: Arena, const SIZE: usize> Drop for OwnedPacket<A, SIZE> {
    fn drop(&mut self) {
        // SAFETY: the unit of the pool was the packet's, which is gone.
        unsafe { self.pool.shared.give_back(&[self.held.number]) };
    }
}

/// Without a copy: the unit goes back to the pool when the last of the `Bytes` is dropped. One call of the global allocator.
#[cfg(feature = "bytes")]
#[cfg_attr(docsrs, doc(cfg(feature = "bytes")))]
impl<A: Arena + Send + Sync + 'static, const SIZE: usize> From<OwnedPacket<A, SIZE>> for bytes::Bytes {
    fn from(packet: OwnedPacket<A, SIZE>) -> Self {
        Self::from_owner(packet)
    }
}

impl<A: Arena, const SIZE: usize> fmt::Debug for OwnedPacket<A, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { number, start, length } = self.held;
        write!(f, "OwnedPacket(unit {number}, {length} bytes at {start})")
    }
}
