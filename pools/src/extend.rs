//! Extending a pool.

use tripoint_core::{Arena, Block, PoolHeader, Result};

/// Gets tracts of `extend_by` bytes, or, where those cannot be had, of the
/// `needed` bytes alone.
pub(crate) fn extend<A: Arena>(header: &PoolHeader<A>, needed: usize, extend_by: usize) -> Result<Block> {
    if needed < extend_by
        && let Ok(extent) = header.extend(extend_by)
    {
        return Ok(extent);
    }
    header.extend(needed)
}
