//! Extending a pool.

use tripoint_core::internal::aver_whole;
use tripoint_core::{
    AddrRange, Align, Arena, Block, Error, PART_ALIGN, PART_SIZE_MAX, PoolHeader, Result, aver,
};

use crate::link::LinkKey;
use crate::placement::ample_size;

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
    let needed = ample_size(min, align, header.arena().grain()).ok_or(Error::Limit)?;
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

/// The units that a pool begins with room for.
const FIRST_UNITS: usize = 8;

/// Gets a part of a grain for a pool of units that has less than the largest part: at first for a few units, and then
/// for three times what it has. `None` if that is larger than a part or if the arena has none. With the feature
/// `hardening` there is none: free parts have links of the arena in them (design/hardening.md `.mfs`).
pub(crate) fn extend_small<A: Arena>(header: &PoolHeader<A>, unit: usize, align: usize) -> Option<Block> {
    let (first, total) = (unit.checked_mul(FIRST_UNITS)?, header.total());
    if LinkKey::CHECKS || first > PART_SIZE_MAX || align > PART_ALIGN || total >= PART_SIZE_MAX {
        return None;
    }
    header.extend_part(first.max(3 * total).min(PART_SIZE_MAX)).ok()
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
