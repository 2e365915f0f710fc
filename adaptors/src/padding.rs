//! The sums of memory that is cut from chunks. Kept apart from pointers, so that laws can be proved of it
//! (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

use core::alloc::Layout;

/// The bytes of a word. Objects of a scratch take whole ones, so that those which need no more alignment than that find the next
/// place aligned.
pub(crate) const WORD: usize = size_of::<usize>();

/// The bytes from an address up to the next multiple of an alignment.
#[inline(always)]
pub(crate) const fn padding(address: usize, align: usize) -> usize {
    address.wrapping_neg() & (align - 1)
}

/// The size of a layout in whole words, in bytes. At most half of all addresses.
#[inline(always)]
pub(crate) const fn words(layout: Layout) -> usize {
    (layout.size() + (WORD - 1)) & !(WORD - 1)
}
