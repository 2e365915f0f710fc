//! How an object gets more room where it lies, or less (design/land.md `.room`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Arena, Block, LockKind, ManualPool, PoolLock};

use super::bins::Binned;
use super::fit::FitMemory;
use crate::granules::Granules;
use crate::poison::poison;
use crate::seal::SEAL_SIZE;

/// The room of an object, in bytes, before and after it is resized.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    from: usize,
    to: usize,
}

impl Room {
    /// The room for both layouts. `None` if there is none for one, or if the alignment changes.
    pub(crate) fn changed<P: ManualPool>(pool: &P, from: Layout, to: Layout) -> Option<Self> {
        if from.align() != to.align() {
            return None;
        }
        Some(Self { from: pool.reserve_size(from)?, to: pool.reserve_size(to)? })
    }
}

impl<A: Arena, F: FitMemory, L: LockKind> Granules<A, Binned<F>, L> {
    /// Changes the room of an object where it lies (design/land.md `.room`). Nothing is returned to the arena, whose hook may
    /// unwind: then the caller would not know the object's layout (`.room.spare`).
    ///
    /// Objects of buffers have no seal, and so keep their room in a hardened pool.
    ///
    /// # Safety
    /// - `object` is an object of this pool that takes `room.from` bytes. All room is whole granules.
    pub(crate) unsafe fn resize_room(&self, object: NonNull<u8>, room: Room) -> Option<NonNull<u8>> {
        // SAFETY: the caller's object, which the arena's pointer reaches.
        let object = unsafe { Block::new(self.header.reach(object.addr()), room.from) };
        // SAFETY: if the block is an object of the pool, it is the caller's.
        if !unsafe { self.seals.is_sealed(&self.header, object) } {
            return None;
        }
        if let Some((kept, tail)) = object.split_at(room.to) {
            // SAFETY: the object's seal is there; the client has only what its new layout has, which ends before the new
            // seal.
            unsafe { self.seals.reseal(object, kept) };
            // SAFETY: the object has no part in its end any more.
            unsafe { poison(Block::new(tail.base(), tail.size() - SEAL_SIZE)) };
            // SAFETY: whole granules of the pool, which are in no object.
            unsafe { self.join(tail) };
        } else {
            let mut free = self.free.lock().ok()?;
            // SAFETY: the granules before the limit are the caller's object, which the arena's pointer reaches.
            unsafe { free.memory().take_at(object.limit(), room.to - room.from) }?;
            drop(free);
            // SAFETY: the object and the granules that were just taken from its limit on; the pointer has the
            // provenance of the arena's range.
            let grown = unsafe { Block::new(object.base(), room.to) };
            // SAFETY: the object's seal is there; nothing uses the granules that were taken.
            unsafe { self.seals.reseal(object, grown) };
        }
        Some(object.base())
    }
}
