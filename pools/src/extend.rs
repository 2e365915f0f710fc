//! Extending a pool.

use tripoint_core::internal::aver_whole;
use tripoint_core::{AddrRange, Align, Arena, Block, Error, PoolHeader, Result, aver};

/// New tracts, and the part of them that was asked for.
#[derive(Debug)]
pub(crate) struct Extension {
    /// All of the new memory, which nothing uses yet.
    pub(crate) extent: Block,
    /// The first aligned bytes of it.
    pub(crate) wanted: AddrRange,
}

/// [Gets](extend) tracts in which `min` aligned bytes fit wherever they lie; the part
/// that is wanted has as many bytes as there are, up to `max`.
///
/// # Errors
/// Those of [`Arena::alloc_tracts`], and [`Error::Limit`] for a sum that overflows.
pub(crate) fn extend_for<A: Arena>(
    header: &PoolHeader<A>,
    min: usize,
    max: usize,
    align: Align,
    extend_by: usize,
) -> Result<Extension> {
    let padding = align.get().saturating_sub(header.arena().grain());
    let needed = min.checked_add(padding).ok_or(Error::Limit)?;
    let extent = extend(header, needed, extend_by)?;
    // The padding leads to an aligned base, with room for `min` bytes behind it.
    let base = extent.range().base().align_up(align).ok_or(Error::Limit)?;
    aver!(
        base.get() <= extent.range().limit().get() - min,
        "{extent:?} has no room for {min} bytes aligned to {align:?}"
    );
    let size = max.min(extent.range().limit().get() - base.get());
    let wanted = AddrRange::with_size(base, size).ok_or(Error::Limit)?;
    Ok(Extension { extent, wanted })
}

/// Gets tracts of `extend_by` bytes, or, if those cannot be had, of the
/// `needed` bytes alone. In a frozen arena only what is needed is asked for, so
/// that a request is refused once.
pub(crate) fn extend<A: Arena>(header: &PoolHeader<A>, needed: usize, extend_by: usize) -> Result<Block> {
    aver_whole(header);
    if needed < extend_by
        && !header.arena().is_frozen()
        && let Ok(extent) = header.extend(extend_by)
    {
        return Ok(extent);
    }
    header.extend(needed)
}
