//! Poison: a pattern in memory that was freed (design/hardening.md `.poison`).

use tripoint_core::Block;

/// With the feature `poison`, fills memory that was freed. Without it, nothing.
///
/// # Safety
/// - Nothing uses the block.
#[inline]
pub(crate) unsafe fn poison(block: Block) {
    if cfg!(feature = "poison") {
        // SAFETY: nothing uses the block.
        unsafe { block.write_poison() };
    }
}
