//! A block of memory: a range that keeps its provenance.

use core::fmt;
use core::ptr::NonNull;

use crate::words::addr::{Addr, AddrRange};

/// `size` bytes of memory from `base`, whose holder alone may touch them.
///
/// Ranges travel between layers as blocks: an arena gives tracts, a pool gives a
/// fill, a buffer gives back what it did not use. A block is a claim, not a
/// borrow: who holds it says in its documentation until when it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Block {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: a block is an address range and the provenance to reach it; it holds
// no thread's state, and passing the claim on is its purpose.
unsafe impl Send for Block {}
// SAFETY: a shared `Block` gives out only its words; following them is unsafe.
unsafe impl Sync for Block {}

impl Block {
    /// The block of `size` bytes from `base`.
    ///
    /// # Safety
    /// - `base` must be valid for reads and writes of `size` bytes within one
    ///   allocation, for as long as the block is used.
    #[must_use]
    pub const unsafe fn new(base: NonNull<u8>, size: usize) -> Self {
        Self { base, size }
    }

    /// The first byte.
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
        // SAFETY: the block lies within one allocation (`Block::new`), so its
        // end is in bounds or one past them.
        unsafe { self.base.add(self.size) }
    }

    /// The addresses of the block.
    #[must_use]
    pub fn range(self) -> AddrRange {
        let base = Addr::of(self.base.as_ptr());
        // A block within an allocation never reaches past the address space.
        AddrRange::with_size(base, self.size).unwrap_or_default()
    }

    /// The first `size` bytes, and the rest; `None` where the block is smaller.
    #[must_use]
    pub fn split_at(self, size: usize) -> Option<(Self, Self)> {
        let rest = self.size.checked_sub(size)?;
        // SAFETY: `size <= self.size`, so the offset stays in the block and
        // both parts are valid for what they say.
        let parts = unsafe { (Self::new(self.base, size), Self::new(self.base.add(size), rest)) };
        Some(parts)
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
