//! Poison: a pattern in memory that was freed (design/hardening.md `.poison`).

use tripoint_core::Block;

/// What freed memory is filled with: as a pointer it leads nowhere, as a number it is
/// odd, large and negative.
#[cfg(feature = "poison")]
const POISON: u8 = 0xdd;

/// With the feature `poison`, fills memory that was freed. Without it, nothing.
///
/// # Safety
/// - Nothing uses the block.
#[inline]
pub(crate) unsafe fn poison(block: Block) {
    #[cfg(feature = "poison")]
    // SAFETY: nothing uses the block; a block is valid for writes.
    unsafe {
        block.base().write_bytes(POISON, block.size());
    }
    #[cfg(not(feature = "poison"))]
    let _ = block;
}
