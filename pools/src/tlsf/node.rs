//! A free block as it describes itself.
//!
//! ```text
//!   word   0         1         2               last
//!        +---------+---------+------+-------+------+
//!        | next    | previous| size |  ...  | size |   two granules or more
//!        +---------+---------+------+-------+------+
//!        | next +1 | prev. +1|                         one granule
//!        +---------+---------+
//! ```
//!
//! So the words at the front hold the length of a block that begins there, and the
//! last word the length of a block that ends there (design/pool-tlsf.md
//! `.tlsf.node`).

use core::num::NonZeroUsize;
use core::ptr::{NonNull, null_mut, without_provenance_mut};

use tripoint_core::{Addr, Block};

use crate::land::GRANULE;
use crate::link::{Damaged, LinkKey};

const WORD: usize = size_of::<usize>();

/// Set in the links of a block of one granule. Sizes and links are multiples of a
/// granule, so that the bit is free.
const SINGLE: usize = 1;

/// A place in a free block, in words from its base.
#[derive(Clone, Copy, Debug)]
pub(super) enum Link {
    /// To the next block of the list.
    Next = 0,
    /// To the one before.
    Previous = 1,
}

const SIZE: usize = 2;

/// A free block that is, or is about to be, in a list.
///
/// Invariant: its words are granule-aligned memory that is valid for reads and
/// writes, and that only the lists touch. [`Node::create`] is promised it;
/// code that takes a block out of the lists forgets its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(NonNull<*mut u8>);

impl Node {
    /// Makes a node in the block, outside of any list.
    ///
    /// # Safety
    /// - `block` is granule-aligned and one or more granules in size.
    /// - Nothing else touches it until it has left the lists.
    #[inline]
    pub(super) unsafe fn create(block: Block, key: LinkKey) -> Self {
        let node = Self(block.base().cast());
        if block.size() > GRANULE {
            node.write(SIZE, without_provenance_mut(block.size()), key);
            node.write(block.size() / WORD - 1, without_provenance_mut(block.size()), key);
        }
        node
    }

    /// The node of the free block that ends at `limit`.
    ///
    /// # Safety
    /// - A free block of the lists ends there.
    /// - The pointer may be used for that block too.
    #[inline]
    pub(super) unsafe fn ending_at(limit: NonNull<u8>, key: LinkKey) -> Result<Self, Damaged> {
        // SAFETY: a free block ends at `limit`, so a word of it lies before.
        let last = unsafe { limit.sub(WORD).cast::<*mut u8>() };
        // SAFETY: the word lies in the granule that ends at `limit`; words of free blocks are aligned.
        let word = key.decode(last.addr().get(), unsafe { last.read() }).addr();
        let size = if word & SINGLE == 0 { word } else { GRANULE };
        let base = limit.as_ptr().wrapping_sub(size);
        if LinkKey::CHECKS && (size == 0 || !key.is_link(base.addr(), GRANULE)) {
            return Err(Damaged);
        }
        // The block does not begin at zero.
        let node = Self(NonNull::new(base.cast()).ok_or(Damaged)?);
        if LinkKey::CHECKS && node.size(key)? != size {
            return Err(Damaged);
        }
        Ok(node)
    }

    /// The node of the free block that begins at `base`.
    ///
    /// # Safety
    /// - A free block of the lists begins there.
    /// - The pointer may be used for that block too.
    #[inline]
    pub(super) const unsafe fn starting_at(base: NonNull<u8>) -> Self {
        Self(base.cast())
    }

    /// The address of the block.
    pub(super) fn addr(self) -> Addr {
        Addr::of(self.0.as_ptr())
    }

    /// What would be the node of a block at another address of the range.
    pub(super) fn with_addr(self, addr: NonZeroUsize) -> Self {
        Self(self.0.with_addr(addr))
    }

    /// Whether the block is one granule, as it says itself.
    #[inline]
    pub(super) fn is_single(self, key: LinkKey) -> bool {
        self.read(Link::Next as usize, key).addr() & SINGLE != 0
    }

    /// Whether the words at the front and the end of the block, of two granules or
    /// more, both say that it has this size.
    pub(super) fn says_size(self, size: usize, key: LinkKey) -> bool {
        self.read(SIZE, key).addr() == size && self.read(size / WORD - 1, key).addr() == size
    }

    /// Where a link leads, without trust in it.
    pub(super) fn link_addr(self, link: Link, key: LinkKey) -> usize {
        self.read(link as usize, key).addr() & !SINGLE
    }

    /// The size of the block, in bytes.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(super) fn size(self, key: LinkKey) -> Result<usize, Damaged> {
        if self.is_single(key) {
            return Ok(GRANULE);
        }
        let size = self.read(SIZE, key).addr();
        if LinkKey::CHECKS && !self.is_size(size, key) {
            return Err(Damaged);
        }
        Ok(size)
    }

    /// Whether the block could be so large: its end says the same.
    fn is_size(self, size: usize, key: LinkKey) -> bool {
        let last = self.0.addr().get().wrapping_add(size).wrapping_sub(GRANULE);
        size > GRANULE
            && size.is_multiple_of(GRANULE)
            && last > self.0.addr().get()
            && key.is_link(last, GRANULE)
            && self.says_size(size, key)
    }

    /// Returns the free block that the node lies in.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(super) fn block(self, key: LinkKey) -> Result<Block, Damaged> {
        let size = self.size(key)?;
        // SAFETY: the invariant of the type, for as long as the block is free; a caller that takes the
        // block out owns it from then on.
        Ok(unsafe { Block::new(self.0.cast(), size) })
    }

    /// The node that a link leads to.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(super) fn link(self, link: Link, key: LinkKey) -> Result<Option<Self>, Damaged> {
        let to = self.read(link as usize, key).map_addr(|addr| addr & !SINGLE);
        if key.is_link(to.addr(), GRANULE) { Ok(NonNull::new(to.cast()).map(Self)) } else { Err(Damaged) }
    }

    /// Makes a link lead to a node, or nowhere; `size` is that of this block.
    #[inline]
    pub(super) fn set_link(self, link: Link, to: Option<Self>, size: usize, key: LinkKey) {
        let to = to.map_or(null_mut(), |node| node.0.as_ptr().cast::<u8>());
        let tag = if size == GRANULE { SINGLE } else { 0 };
        self.write(link as usize, to.map_addr(|addr| addr | tag), key);
    }

    /// Makes a link lead to another node of the same list, or nowhere.
    #[inline]
    pub(super) fn redirect(self, link: Link, to: Option<Self>, key: LinkKey) {
        let tag = self.read(link as usize, key).addr() & SINGLE;
        let to = to.map_or(null_mut(), |node| node.0.as_ptr().cast::<u8>());
        self.write(link as usize, to.map_addr(|addr| addr | tag), key);
    }

    #[inline]
    fn read(self, word: usize, key: LinkKey) -> *mut u8 {
        // SAFETY: the invariant of the type: callers ask for words the block has.
        let slot = unsafe { self.0.add(word) };
        // SAFETY: a word of a free block, which only the pool touches: aligned, valid for reads.
        key.decode(slot.addr().get(), unsafe { slot.read() })
    }

    #[inline]
    fn write(self, word: usize, value: *mut u8, key: LinkKey) {
        // SAFETY: the invariant of the type: callers ask for words the block has.
        let slot = unsafe { self.0.add(word) };
        // SAFETY: a word of a free block, which only the pool touches: aligned, valid for writes.
        unsafe { slot.write(key.encode(slot.addr().get(), value)) };
    }
}
