//! A list of free blocks that one thread reads and changes, its owner, in a word that others may look at.

use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Ordering};

use super::free_block::{FreeBlock, Link};
use crate::link::{Damaged, LinkKey};

/// The first block of a list of its owner. The word is read and written without read-modify-writes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct OwnList(AtomicPtr<FreeBlock>);

impl OwnList {
    /// No blocks.
    pub(crate) fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The first block, which stays in the list.
    #[inline(always)]
    pub(crate) fn first(&self) -> Link {
        NonNull::new(self.0.load(Ordering::Relaxed))
    }

    /// Makes this the list that begins with a block.
    #[inline(always)]
    pub(crate) fn set(&self, first: Link) {
        self.0.store(first.map_or(ptr::null_mut(), NonNull::as_ptr), Ordering::Relaxed);
    }

    /// Puts a block before all others.
    ///
    /// # Safety
    /// - `block` is a block that nothing uses, and is in no list. The caller is the owner.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, block: NonNull<u8>, key: LinkKey) {
        // SAFETY: nothing uses the block, which is in no list.
        self.set(Some(unsafe { FreeBlock::link(block, self.first(), key) }));
    }

    /// Takes the first block out, of those that are aligned to `align`.
    ///
    /// # Errors
    /// [`Damaged`] if its link was written over. The list is as it was.
    ///
    /// # Safety
    /// - The caller is the owner, and the first block is free and begins with its link.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, align: usize, key: LinkKey) -> Result<Option<NonNull<u8>>, Damaged> {
        let Some(block) = self.first() else { return Ok(None) };
        // SAFETY: the block is free and begins with its link; the caller is the owner.
        self.set(unsafe { FreeBlock::read(block, align, key) }?);
        Ok(Some(block.cast()))
    }
}
