//! Seals: what tells a hardened pool that an object is one that it gave out.
//!
//! ```text
//!   object   base                       limit
//!          +--------------+----------+------+
//!          | the client's | rounding | seal |
//!          +--------------+----------+------+
//! ```
//!
//! With the feature `hardening` an object takes a word more. There the pool writes where
//! the object begins, encoded for where the word lies, and so with the object's size; when
//! it is freed, that is undone. So what is freed is alive, is an object's base, and has
//! its size, which nothing else in the pool's memory tells. Without the feature all of
//! this is nothing (design/hardening.md `.seal`).

use core::ptr::NonNull;
#[cfg(feature = "hardening")]
use core::ptr::{null_mut, without_provenance_mut};

#[cfg(feature = "hardening")]
use tripoint_core::Addr;
#[cfg(feature = "hardening")]
use tripoint_core::primitive::{AtomicBool, Ordering};
use tripoint_core::{Arena, Block, PoolHeader};

use crate::link::{Damaged, LinkKey};

/// The bytes that an object takes for its seal.
pub(crate) const SEAL_SIZE: usize = if LinkKey::CHECKS { size_of::<usize>() } else { 0 };

/// How the objects of one pool are sealed.
#[derive(Debug)]
pub(crate) struct Seals {
    #[cfg(feature = "hardening")]
    key: LinkKey,
    /// Whether buffers were filled: the objects that they allocate have no seals.
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

    /// Seals an object that is about to be given out.
    ///
    /// # Safety
    /// - Nobody uses the block, which is granules.
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

    /// Readies memory for a buffer to allocate in: words where seals would lie are
    /// written, and no seals.
    ///
    /// # Safety
    /// - Nobody uses the block.
    pub(crate) unsafe fn fill(&self, block: Block) {
        #[cfg(feature = "hardening")]
        {
            self.has_filled.store(true, Ordering::Relaxed);
            // SAFETY: the caller's duty; a block is valid for writes.
            unsafe { block.base().write_bytes(0, block.size()) };
        }
        #[cfg(not(feature = "hardening"))]
        let _ = block;
    }

    /// Whether an object of `alloc` is at this address and of this size, and was not
    /// freed. Without the feature everything is.
    ///
    /// # Safety
    /// - If the block is an object of the pool, it is the caller's.
    #[inline]
    pub(crate) unsafe fn is_sealed<A: Arena>(&self, header: &PoolHeader<A>, object: Block) -> bool {
        #[cfg(feature = "hardening")]
        {
            // SAFETY: memory of the pool, granules of it, so its last word may be read.
            // Where it is no object's, whoever uses it broke the rules, which is found
            // out here as far as it can be.
            is_of_pool(header, object) && unsafe { slot(object).read() } == self.of(object)
        }
        #[cfg(not(feature = "hardening"))]
        {
            let _ = (header, object);
            true
        }
    }

    /// Whether a sealed object of so many bytes is at an address, if any is that large.
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
            // SAFETY: the caller's, if it is an object; reached with the provenance of the
            // arena's range.
            let object = unsafe { Block::new(header.reach(object.addr()), size) };
            // SAFETY: as above.
            unsafe { self.is_sealed(header, object) }
        })
    }

    /// Undoes the seal of an object that is freed.
    ///
    /// # Errors
    /// [`Damaged`] where there is none: the object was freed before, is not the pool's, or
    /// has another base or size. In a pool that filled buffers, what has no seal passes
    /// for one of their objects.
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
            // SAFETY: the caller's duties.
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

    /// The seal of an object: an address that no link leads to.
    #[cfg(feature = "hardening")]
    fn of(&self, object: Block) -> *mut u8 {
        self.key.encode(slot(object).addr().get(), without_provenance_mut(!object.base().addr().get()))
    }
}

/// Where the seal of an object lies.
#[cfg(feature = "hardening")]
fn slot(object: Block) -> NonNull<*mut u8> {
    // Not followed before the block is known to be the pool's.
    let offset = object.size().saturating_sub(SEAL_SIZE);
    let addr = object.base().as_ptr().wrapping_add(offset);
    NonNull::new(addr.cast()).unwrap_or(NonNull::dangling())
}

/// Whether both ends of a block lie in the pool, and where objects may.
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
