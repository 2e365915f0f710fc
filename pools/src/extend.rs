//! Extending a pool.

use tripoint_core::{Arena, Block, PoolHeader, Result};

/// Gets tracts of `extend_by` bytes, or, where those cannot be had, of the
/// `needed` bytes alone. In a frozen arena only what is needed is asked for, so
/// that a request is refused once.
pub(crate) fn extend<A: Arena>(header: &PoolHeader<A>, needed: usize, extend_by: usize) -> Result<Block> {
    if needed < extend_by
        && !header.arena().is_frozen()
        && let Ok(extent) = header.extend(extend_by)
    {
        return Ok(extent);
    }
    header.extend(needed)
}
