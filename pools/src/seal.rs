//! Seals: how a hardened pool recognises an object that it handed out.
//!
//! ```text
//!   object   base                       limit
//!          +--------------+----------+------+
//!          | the client's | rounding | seal |
//!          +--------------+----------+------+
//! ```
//!
//! With the feature `hardening` an object takes one more word, its last. The pool writes
//! there the address where the object begins, encoded for the place of the word. So the
//! seal stands for the object's address and size. A free checks it and removes it: what is
//! freed is then known to be alive, to be an object's base, and to have that size. Nothing
//! else in the pool's memory shows this. Without the feature none of this is done, and
//! nothing is stored (design/hardening.md `.seal`).

use core::ptr::NonNull;
#[cfg(feature = "hardening")]
use core::ptr::{null_mut, without_provenance_mut};

#[cfg(feature = "hardening")]
use tripoint_core::Addr;
#[cfg(feature = "hardening")]
use tripoint_core::internal::{AtomicBool, Ordering};
use tripoint_core::{Arena, Block, PoolHeader};

use crate::link::{Damaged, LinkKey};

/// The bytes that an object takes for its seal.
pub(crate) const SEAL_SIZE: usize = if LinkKey::CHECKS { size_of::<usize>() } else { 0 };

/// How the objects of one pool are sealed.
#[derive(Debug)]
pub(crate) struct Seals {
    #[cfg(feature = "hardening")]
    key: LinkKey,
    /// Whether buffers were ever filled: the objects they allocate have no seals.
    #[cfg(feature = "hardening")]
    has_filled: AtomicBool,
}

impl Seals {
    /// For the objects of a pool.
    pub(crate) fn new<A: Arena>(header: &PoolHeader<A>) -> Self {
        #[cfg(not(feature = "hardening"))]
        let _ = header;
        Self {
            #[cfg(feature = "hardening")]
            key: LinkKey::of(header),
            #[cfg(feature = "hardening")]
            has_filled: AtomicBool::new(false),
        }
    }

    /// Seals an object that is about to be handed out.
    ///
    /// # Safety
    /// - Nothing uses the block, which consists of whole granules.
    #[inline]
    pub(crate) unsafe fn seal(&self, object: Block) {
        #[cfg(feature = "hardening")]
        {
            let (slot, seal) = (slot(object), self.of(object));
            // SAFETY: the last word of the block, aligned as granules are.
            unsafe { slot.write(seal) };
        }
        #[cfg(not(feature = "hardening"))]
        let _ = object;
    }

    /// Prepares memory for a buffer: zeroes it, so that the words where seals would lie have
    /// values, and those are no seals.
    ///
    /// # Safety
    /// - Nothing uses the block.
    pub(crate) unsafe fn fill(&self, block: Block) {
        #[cfg(feature = "hardening")]
        {
            self.has_filled.store(true, Ordering::Relaxed);
            // SAFETY: nothing uses the block; a block is valid for writes.
            unsafe { block.base().write_bytes(0, block.size()) };
        }
        #[cfg(not(feature = "hardening"))]
        let _ = block;
    }

    /// Whether a live object of `alloc` has this address and this size. Without the feature
    /// this is always true.
    ///
    /// # Safety
    /// - If the block is an object of the pool, it is the caller's.
    #[inline]
    pub(crate) unsafe fn is_sealed<A: Arena>(&self, header: &PoolHeader<A>, object: Block) -> bool {
        #[cfg(feature = "hardening")]
        {
            // SAFETY: the block is granules of the pool's memory, so its last word may be
            // read. If it is no object of the caller's, a client broke the rules, and this is
            // the check that finds it, as far as possible.
            is_of_pool(header, object) && unsafe { slot(object).read() } == self.of(object)
        }
        #[cfg(not(feature = "hardening"))]
        {
            let _ = (header, object);
            true
        }
    }

    /// Whether a sealed object of this size is at an address; false if `size` is `None`.
    ///
    /// # Safety
    /// - As [`Seals::is_sealed`].
    #[inline]
    pub(crate) unsafe fn knows<A: Arena>(
        &self,
        header: &PoolHeader<A>,
        object: NonNull<u8>,
        size: Option<usize>,
    ) -> bool {
        size.is_some_and(|size| {
            // SAFETY: the block is the caller's, if it is an object; it is reached with the
            // provenance of the arena's range.
            let object = unsafe { Block::new(header.reach(object.addr()), size) };
            // SAFETY: if the block is an object of the pool, it is the caller's.
            unsafe { self.is_sealed(header, object) }
        })
    }

    /// Removes the seal of an object that is freed.
    ///
    /// # Errors
    /// [`Damaged`] if there is none: the object was freed before, is not the pool's, or has
    /// another base or size. Once the pool has filled buffers, an address in the pool without
    /// a seal is taken for one of their objects, and is no error.
    ///
    /// # Safety
    /// - As [`Seals::is_sealed`].
    #[inline]
    pub(crate) unsafe fn unseal<A: Arena>(
        &self,
        header: &PoolHeader<A>,
        object: Block,
    ) -> Result<(), Damaged> {
        #[cfg(feature = "hardening")]
        {
            // SAFETY: if the block is an object of the pool, it is the caller's.
            if unsafe { self.is_sealed(header, object) } {
                // SAFETY: the object's last word, which is the pool's.
                unsafe { slot(object).write(null_mut()) };
                return Ok(());
            }
            let is_buffers = self.has_filled.load(Ordering::Relaxed) && is_of_pool(header, object);
            if is_buffers { Ok(()) } else { Err(Damaged) }
        }
        #[cfg(not(feature = "hardening"))]
        {
            let _ = (header, object);
            Ok(())
        }
    }

    /// Moves the seal of an object whose room has changed from `from` to `to`.
    ///
    /// # Safety
    /// - The object is sealed with the room `from`.
    /// - Nothing else uses either block, except that the caller of the pool has those bytes of its object that both
    ///   have before their last words. Both are whole granules.
    #[inline]
    pub(crate) unsafe fn reseal(&self, from: Block, to: Block) {
        #[cfg(feature = "hardening")]
        // SAFETY: the object's last word, which is the pool's.
        unsafe {
            slot(from).write(null_mut());
        }
        #[cfg(not(feature = "hardening"))]
        let _ = from;
        // SAFETY: the last word of whole granules, which nothing else uses.
        unsafe { self.seal(to) };
    }

    /// The seal of an object: an address that no link leads to.
    #[cfg(feature = "hardening")]
    fn of(&self, object: Block) -> *mut u8 {
        self.key.encode(slot(object).addr().get(), without_provenance_mut(!object.base().addr().get()))
    }
}

/// Where the seal of an object lies.
#[cfg(feature = "hardening")]
fn slot(object: Block) -> NonNull<*mut u8> {
    // This is not followed before the block is known to be the pool's.
    let offset = object.size().saturating_sub(SEAL_SIZE);
    let addr = object.base().as_ptr().wrapping_add(offset);
    NonNull::new(addr.cast()).unwrap_or(NonNull::dangling())
}

/// Whether both ends of a block lie in the pool, and its base is one that objects may have.
#[cfg(feature = "hardening")]
fn is_of_pool<A: Arena>(header: &PoolHeader<A>, object: Block) -> bool {
    use crate::land::GRANULE;
    let base = object.base().addr().get();
    let last = base.checked_add(object.size() - 1);
    base.is_multiple_of(GRANULE)
        && last.is_some_and(|last| {
            [base, last].iter().all(|&addr| header.arena().pool_of(Addr::new(addr)) == Some(header.id()))
        })
}
