//! A block of memory: a range that keeps its provenance.

use core::fmt;
use core::ptr::NonNull;

use crate::aver;
use crate::values::addr::{Addr, AddrRange};

/// `size` bytes of memory from `base`, which only the holder of the block may touch.
///
/// Memory travels between layers as blocks: an arena returns tracts, a pool returns a
/// fill, a buffer returns what it did not use. A block is a claim, not a borrow: the
/// function that returns it documents how long the claim is valid. A function that takes one
/// may write to its memory, unless it says that it only reads: then the memory may be read-only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Block {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: a block is a pointer and a size, neither of which is bound to a thread. Its memory may
// be used on whichever thread the claim is passed to.
unsafe impl Send for Block {}
// SAFETY: a shared block only returns its pointer and its size; following the pointer is unsafe.
unsafe impl Sync for Block {}

impl Block {
    /// Creates the block of `size` bytes from `base`.
    ///
    /// # Safety
    /// - `base` must be valid for reads of `size` bytes within one allocation, for as long as the block is used.
    /// - It must be valid for writes as well, unless the block is passed only to functions that say that they only
    ///   read.
    #[must_use]
    pub const unsafe fn new(base: NonNull<u8>, size: usize) -> Self {
        Self { base, size }
    }

    /// Fills the block with the pattern of freed memory (design/hardening.md `.poison`). As a pointer it leads nowhere, as a
    /// number it is odd, large and negative.
    ///
    /// # Safety
    /// - Nothing uses the block.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn write_poison(self) {
        // SAFETY: a block is valid for writes of its size; nothing uses it.
        unsafe { self.base.write_bytes(0xdd, self.size) };
    }

    /// The first byte.
    #[inline]
    #[must_use]
    pub const fn base(self) -> NonNull<u8> {
        self.base
    }

    /// The number of bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        self.size
    }

    /// One past the last byte.
    #[must_use]
    pub const fn limit(self) -> NonNull<u8> {
        // SAFETY: the block lies within one allocation (`Block::new`), so `size` bytes from its
        // base are in bounds or one past them.
        unsafe { self.base.add(self.size) }
    }

    /// The addresses of the block.
    #[must_use]
    pub fn range(self) -> AddrRange {
        let base = Addr::of(self.base.as_ptr());
        let range = AddrRange::with_size(base, self.size);
        aver!(range.is_some(), "{self:?} reaches past the address space");
        range.unwrap_or_default()
    }

    /// The first `size` bytes, and the rest; `None` if the block is smaller.
    #[must_use]
    pub fn split_at(self, size: usize) -> Option<(Self, Self)> {
        let rest = self.size.checked_sub(size)?;
        // SAFETY: `size` is at most that of the block, so the offset stays in it; the two parts are
        // valid for what the block is valid for.
        Some(unsafe { (Self::new(self.base, size), Self::new(self.base.add(size), rest)) })
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({:p}+{:#x})", self.base, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn blocks_are_split_within_their_bounds() {
        let mut memory = [0_u8; 48];
        let base = NonNull::from(&mut memory).cast::<u8>();
        // SAFETY: the array, which lives until the test ends.
        let block = unsafe { Block::new(base, 48) };
        assert_eq!((block.base(), block.size()), (base, 48));
        assert_eq!((block.range().base(), block.range().size()), (Addr::of(base.as_ptr()), 48));
        let (before, after) = block.split_at(16).unwrap();
        assert_eq!((before.base(), before.size(), after.size()), (base, 16, 32));
        assert_eq!((before.limit(), after.limit()), (after.base(), block.limit()));
        assert_eq!(block.limit().addr().get() - base.addr().get(), 48);
        assert_eq!(block.split_at(48).map(|(whole, rest)| (whole, rest.size())), Some((block, 0)));
        assert_eq!(block.split_at(49), None);
        assert_eq!(format!("{block:?}"), format!("Block({base:p}+0x30)"));
    }
}
