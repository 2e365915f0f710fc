//! The first word of a free block: its link to the next one of a list.
//!
//! In the duties below, a block "that nothing uses" has room for a word and is aligned for it.
//! It stays valid for reads and writes as long as the list, chain or stack that it goes into
//! is used, and every other that it goes into from there. Blocks of a pool do: the pool
//! outlives its lists.

use core::ptr::{self, NonNull};

use crate::link::{Damaged, LinkKey, Watch};

/// A free block in a list: its first word is its link, encoded for where it lies (design/hardening.md `.link`).
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct FreeBlock {
    next: *mut FreeBlock,
}

/// A value that no link has: it is not aligned.
const NO_LINK: *mut FreeBlock = ptr::without_provenance_mut(1);

/// The next free block of a list, if there is one.
pub(crate) type Link = Option<NonNull<FreeBlock>>;

impl FreeBlock {
    /// The link of a free block in a list of blocks that are aligned to `align`.
    ///
    /// # Errors
    /// [`Damaged`] if it was written over, as far as that is seen.
    ///
    /// # Safety
    /// - `block` is free and begins with its link, and is the caller's to read.
    #[inline(always)]
    pub(crate) unsafe fn read(block: NonNull<Self>, align: usize, key: LinkKey) -> Result<Link, Damaged> {
        // SAFETY: the block begins with a link, which is an aligned word, and is the caller's to read.
        unsafe { read_link(block.cast(), align, key) }
    }

    /// Takes a block's link away, as it leaves its list, so that no list that it is in as well leads on from there
    /// (design/hardening.md `.mfs`). First the link has to be found sound: what was damaged may be an object of the client
    /// by now.
    ///
    /// # Safety
    /// - The block is free, and its link was sound. The caller may write to it.
    #[inline(always)]
    pub(crate) unsafe fn forget(block: NonNull<Self>, key: LinkKey) {
        if LinkKey::CHECKS {
            let none = key.encode(block.addr().get(), NO_LINK);
            // SAFETY: the caller may write to the block, which nothing uses.
            unsafe { block.write(Self { next: none }) };
        }
    }

    /// As [`FreeBlock::read`], of a block that is aligned to words; damage is noted, and none.
    ///
    /// # Safety
    /// - As [`FreeBlock::read`].
    #[inline(always)]
    pub(crate) unsafe fn next(block: NonNull<Self>, watch: Watch<'_>) -> Link {
        // SAFETY: the block is free, begins with its link, and is the caller's to read.
        watch.noted(unsafe { Self::read(block, align_of::<Self>(), watch.key) })
    }

    /// As [`FreeBlock::next`], of a block that leaves its list and [forgets](FreeBlock::forget) its link.
    ///
    /// # Safety
    /// - As [`FreeBlock::read`], and the caller may write to the block.
    #[inline(always)]
    pub(crate) unsafe fn take(block: NonNull<Self>, watch: Watch<'_>) -> Link {
        // SAFETY: the block is free, begins with its link, and is the caller's to read.
        let next = unsafe { Self::read(block, align_of::<Self>(), watch.key) };
        if next.is_ok() {
            // SAFETY: the link is sound, and the caller may write to the block.
            unsafe { Self::forget(block, watch.key) };
        }
        watch.noted(next)
    }

    /// Writes a link into a block, which makes it a free one.
    ///
    /// # Safety
    /// - `block` is a block that nothing uses.
    #[inline(always)]
    pub(crate) unsafe fn link(block: NonNull<u8>, next: Link, key: LinkKey) -> NonNull<Self> {
        // SAFETY: nothing uses the block, which has room for a word and is aligned for it.
        unsafe { write_link(block.cast(), next, key) };
        block.cast()
    }
}

/// Writes a link into any word of a free block.
///
/// # Safety
/// - `slot` is an aligned word that nothing uses.
#[inline(always)]
pub(crate) unsafe fn write_link<T>(slot: NonNull<*mut T>, to: Option<NonNull<T>>, key: LinkKey) {
    let word = key.encode(slot.addr().get(), to.map_or(ptr::null_mut(), NonNull::as_ptr));
    // SAFETY: an aligned word that nothing uses.
    unsafe { slot.write(word) };
}

/// The link that was [written](write_link) into a word of a free block, to a block that is aligned to `align`.
///
/// # Errors
/// [`Damaged`] if it was written over, as far as that is seen.
///
/// # Safety
/// - `slot` is an aligned word, which is the caller's to read.
#[inline(always)]
pub(crate) unsafe fn read_link<T>(
    slot: NonNull<*mut T>,
    align: usize,
    key: LinkKey,
) -> Result<Option<NonNull<T>>, Damaged> {
    // SAFETY: an aligned word, which is the caller's to read.
    let to = key.decode(slot.addr().get(), unsafe { slot.read() });
    if key.is_link(to.addr(), align) { Ok(NonNull::new(to)) } else { Err(Damaged) }
}

/// What is in a word of a free block that should be a link, for a check.
///
/// # Safety
/// - `slot` is an aligned word, which is the caller's to read.
pub(crate) unsafe fn peek_link<T>(slot: NonNull<*mut T>, key: LinkKey) -> *mut T {
    // SAFETY: an aligned word, which is the caller's to read; any word makes a link.
    key.decode(slot.addr().get(), unsafe { slot.read() })
}
