//! Seals: how a hardened pool recognises an object that it handed out.
//!
//! ```text
//!   object   base                       limit
//!          +--------------+----------+------+
//!          | the client's | rounding | seal |
//!          +--------------+----------+------+
//! ```
//!
//! With the feature `hardening` an object takes one more word, its last, which is the pool's. It says what the memory before it
//! is, encoded for its place:
//!
//! | word | memory before it | written when |
//! |---|---|---|
//! | the object's address, inverted | an object in use, which begins there | it is handed out |
//! | anything else | an object of a buffer, which divides a fill into objects by itself; or what a pool or client wrote | |
//! | [`FREE`] | no object in use | it is freed, or set aside in a cache |
//!
//! So what is freed is known to be in use, to be an object's base, and to have that size. What is handed out from a list is known to
//! be free. Nothing else in the pool's memory shows either. Without the feature none of this is done, and
//! nothing is stored (design/hardening.md `.seal`).

#[cfg(feature = "hardening")]
use core::ptr::{NonNull, without_provenance_mut};

#[cfg(feature = "hardening")]
use tripoint_core::Addr;
use tripoint_core::{Arena, Block, PoolHeader};

use crate::link::{Damaged, LinkKey};

/// The bytes that an object takes for its seal.
pub(crate) const SEAL_SIZE: usize = if LinkKey::CHECKS { size_of::<usize>() } else { 0 };

/// What a seal says of memory that is no object in use. It is not aligned, and in no arena.
#[cfg(feature = "hardening")]
const FREE: usize = 1;

/// How the objects of one pool are sealed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seals {
    #[cfg(feature = "hardening")]
    key: LinkKey,
}

impl Seals {
    /// For the objects of the pool with this key.
    pub(crate) const fn of(key: LinkKey) -> Self {
        #[cfg(not(feature = "hardening"))]
        let _ = key;
        Self {
            #[cfg(feature = "hardening")]
            key,
        }
    }

    /// Seals an object that is about to be handed out.
    ///
    /// # Safety
    /// - Nothing uses the block, which is whole words.
    #[inline]
    pub(crate) unsafe fn seal(self, object: Block) {
        #[cfg(feature = "hardening")]
        // SAFETY: the last word of a block that nothing uses.
        unsafe {
            self.write(object, of_object(object));
        }
        #[cfg(not(feature = "hardening"))]
        let _ = object;
    }

    /// Seals an object that was free: it leaves a list, and is about to be handed out.
    ///
    /// # Errors
    /// [`Damaged`] if its seal does not say that it is free: it is in use, or was written over.
    ///
    /// # Safety
    /// - As [`Seals::seal`], as far as the lists of the pool say.
    #[inline]
    pub(crate) unsafe fn seal_free(self, object: Block) -> Result<(), Damaged> {
        // SAFETY: whole words of the pool.
        if !unsafe { self.is_free(object) } {
            return Err(Damaged);
        }
        // SAFETY: nothing uses the block: it was in a list, and its seal says so.
        unsafe { self.seal(object) };
        Ok(())
    }

    /// Whether the seal of a block says that it is free. Without the feature this is always true.
    ///
    /// # Safety
    /// - The block is whole words of the pool's memory.
    #[inline]
    pub(crate) unsafe fn is_free(self, block: Block) -> bool {
        #[cfg(feature = "hardening")]
        // SAFETY: whole words of the pool.
        return unsafe { self.read(block) } == FREE;
        #[cfg(not(feature = "hardening"))]
        {
            let _ = block;
            true
        }
    }

    /// Removes the seal of an object in use: it is free from now on.
    ///
    /// # Errors
    /// [`Damaged`] if it has none: it was freed before, or has another base or size.
    ///
    /// # Safety
    /// - The block is whole words of the pool's memory. If it is an object of the pool, it is the caller's.
    #[inline]
    pub(crate) unsafe fn unseal(self, object: Block) -> Result<(), Damaged> {
        #[cfg(feature = "hardening")]
        // SAFETY: memory of the pool, so its last word may be read. If it is no object of the caller's, a client broke the
        // rules, and this is the check that finds it, as far as possible.
        unsafe {
            if self.read(object) != of_object(object) {
                return Err(Damaged);
            }
            self.write(object, FREE);
        }
        #[cfg(not(feature = "hardening"))]
        let _ = object;
        Ok(())
    }

    /// Notes that no piece of a block is an object in use, whatever was said before.
    ///
    /// # Safety
    /// - Nothing uses the block, which is whole pieces of whole words.
    pub(crate) unsafe fn set_free(self, block: Block, piece: usize) {
        #[cfg(feature = "hardening")]
        // SAFETY: a piece of the block, whole words, which nothing uses.
        for_each_piece(block, piece, |piece| unsafe { self.write(piece, FREE) });
        #[cfg(not(feature = "hardening"))]
        let _ = (block, piece);
    }

    /// Moves the seal of an object whose room has changed from `from` to `to`.
    ///
    /// # Safety
    /// - The object is sealed with the room `from`.
    /// - Nothing else uses either block, except that the caller of the pool has those bytes of its object that both
    ///   have before their last words. Both are whole granules.
    #[inline]
    pub(crate) unsafe fn reseal(self, from: Block, to: Block) {
        #[cfg(feature = "hardening")]
        // SAFETY: the object's last word, which is the pool's.
        unsafe {
            self.write(from, FREE);
        }
        #[cfg(not(feature = "hardening"))]
        let _ = from;
        // SAFETY: the last word of whole granules, which nothing else uses.
        unsafe { self.seal(to) };
    }

    /// Whether a live object of `alloc` has this address and this size. Without the feature
    /// this is always true.
    ///
    /// # Safety
    /// - If the block is an object of the pool, it is the caller's.
    #[inline]
    pub(crate) unsafe fn is_sealed<A: Arena>(self, header: &PoolHeader<A>, object: Block) -> bool {
        #[cfg(feature = "hardening")]
        {
            // SAFETY: the block is granules of the pool's memory, so its last word may be
            // read. If it is no object of the caller's, a client broke the rules, and this is
            // the check that finds it, as far as possible.
            is_of_pool(header, object) && unsafe { self.read(object) } == of_object(object)
        }
        #[cfg(not(feature = "hardening"))]
        {
            let _ = (header, object);
            true
        }
    }

    /// What the seal of a block says.
    ///
    /// # Safety
    /// - The block is whole words of the pool's memory.
    #[cfg(feature = "hardening")]
    unsafe fn read(self, block: Block) -> usize {
        let slot = slot(block);
        // SAFETY: the last word of a block of whole words: aligned, and in memory of the pool.
        self.key.decode(slot.addr().get(), unsafe { slot.read() }).addr()
    }

    /// Writes the seal of a block.
    ///
    /// # Safety
    /// - The block is whole words, of which nothing else uses the last.
    #[cfg(feature = "hardening")]
    unsafe fn write(self, block: Block, seal: usize) {
        let slot = slot(block);
        let stored = self.key.encode(slot.addr().get(), without_provenance_mut(seal));
        // SAFETY: the last word of a block of whole words: aligned, and nothing else uses it.
        unsafe { slot.write(stored) };
    }
}

/// Shows the pieces of `size` bytes of a block.
pub(crate) fn for_each_piece(block: Block, size: usize, mut visit: impl FnMut(Block)) {
    let mut rest = block;
    while let Some((piece, others)) = rest.split_at(size).filter(|_| rest.size() != 0) {
        visit(piece);
        rest = others;
    }
}

/// What the seal of an object says: an address that no link leads to.
#[cfg(feature = "hardening")]
fn of_object(object: Block) -> usize {
    !object.base().addr().get()
}

/// Where the seal of a block lies.
#[cfg(feature = "hardening")]
fn slot(block: Block) -> NonNull<*mut u8> {
    // This is not followed before the block is known to be the pool's.
    let offset = block.size().saturating_sub(SEAL_SIZE);
    let addr = block.base().as_ptr().wrapping_add(offset);
    NonNull::new(addr.cast()).unwrap_or(NonNull::dangling())
}

/// Whether both ends of a block lie in the pool, and its base is one that objects of granules may have. Always true
/// without the feature.
#[inline]
pub(crate) fn is_of_pool<A: Arena>(header: &PoolHeader<A>, object: Block) -> bool {
    #[cfg(feature = "hardening")]
    {
        use crate::land::GRANULE;
        let base = object.base().addr().get();
        let last = base.checked_add(object.size() - 1);
        base.is_multiple_of(GRANULE)
            && last.is_some_and(|last| {
                [base, last].iter().all(|&addr| header.arena().pool_of(Addr::new(addr)) == Some(header.id()))
            })
    }
    #[cfg(not(feature = "hardening"))]
    {
        let _ = (header, object);
        true
    }
}
