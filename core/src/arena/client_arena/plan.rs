//! How a client arena divides its memory.

#![forbid(unsafe_code)]

use crate::arena::tract_table::Tract;
use crate::values::addr::ADDRESS_CEILING;
use crate::values::align::Align;

/// Where the parts of a client arena lie in its memory, in bytes from its start:
/// table, gap, grains (design/arena.md `.client.layout`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) table: usize,
    pub(super) base: usize,
    pub(super) grain: Align,
    pub(super) grains: u32,
}

impl Plan {
    /// Fits as many grains as `size` bytes from address `start` hold; `None` if that is none.
    pub(super) fn new(start: usize, size: usize, grain: Align) -> Option<Self> {
        let limit = start.checked_add(size).map_or(ADDRESS_CEILING, |limit| limit.min(ADDRESS_CEILING));
        let table = Align::of::<Tract>().round_up(start)?;
        let room = limit.checked_sub(table)?;
        // As many grains as there would be if none were lost to alignment; then as many
        // of them as fit behind a table for that many.
        let most = (room / (grain.get() + size_of::<Tract>())).min(u32::MAX as usize);
        let base = grain.round_up(table + table_size(most))?;
        let grains = most.min(limit.checked_sub(base)? / grain.get());
        let grains = u32::try_from(grains).ok().filter(|&grains| grains > 0)?;
        Some(Self { table: table - start, base: base - start, grain, grains })
    }
}

/// The bytes of a table for this many grains.
pub(super) const fn table_size(grains: usize) -> usize {
    grains * size_of::<Tract>()
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn plans_stay_below_the_ceiling() {
        let grain = Align::new(4096).unwrap();
        let start = ADDRESS_CEILING - (64 << 10);
        let plan = Plan::new(start, usize::MAX - start, grain).unwrap();
        let limit = start + plan.base + plan.grains as usize * grain.get();
        assert!(limit <= ADDRESS_CEILING && limit > ADDRESS_CEILING - 2 * grain.get());
        assert!(Plan::new(ADDRESS_CEILING, usize::MAX - ADDRESS_CEILING, grain).is_none());
        assert!(Plan::new(usize::MAX - 1, 1, grain).is_none());
    }
}
