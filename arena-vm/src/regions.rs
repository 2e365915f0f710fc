//! The parts of the reserved range.

#![forbid(unsafe_code)]

use tripoint_core::Align;
use tripoint_core::internal::Tract;

/// The most address space that descriptors have, in bytes.
const DESCRIPTORS_MAX: usize = 64 << 20;

/// The least address space that descriptors have, in pages.
const DESCRIPTOR_PAGES_MIN: usize = 16;

/// The reserved range, divided in three. Offsets are in bytes from its base.
///
/// ```text
///  0             table            descriptors         grains
///  | tract table | (to a page)    | (to `align`)      | grain 0 | grain 1 | ...
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regions {
    pub(crate) grain: Align,
    pub(crate) page: Align,
    /// The size of the tract table, which begins at offset zero.
    pub(crate) table_size: usize,
    /// The size of the memory for descriptors, which follows the table.
    pub(crate) descriptors_size: usize,
    /// The offset of grain zero.
    pub(crate) grains_offset: usize,
    /// The number of grains.
    pub(crate) grains: u32,
}

impl Regions {
    /// Divides `size` bytes, with grain zero at a multiple of `align`. Returns `None` if they
    /// have no room for one grain. If addresses are memory (`is_memory`), descriptors have the least that they can have:
    /// grains serve them after that.
    pub(crate) fn new(size: usize, grain: Align, align: Align, page: Align, is_memory: bool) -> Option<Self> {
        let table_size = page.round_up((size / grain.get()).checked_mul(size_of::<Tract>())?)?;
        let least = DESCRIPTOR_PAGES_MIN * page.get();
        let share = if is_memory { least } else { (size / 64).clamp(least, DESCRIPTORS_MAX) };
        let descriptors_size = page.round_up(share)?;
        let grains_offset = align.round_up(table_size.checked_add(descriptors_size)?)?;
        let most = size.checked_sub(grains_offset)? / grain.get();
        let grains = u32::try_from(most).unwrap_or(u32::MAX);
        (grains > 0).then_some(Self { grain, page, table_size, descriptors_size, grains_offset, grains })
    }

    /// The bytes of `count` grains.
    #[inline]
    pub(crate) const fn bytes(&self, count: u32) -> usize {
        count as usize * self.grain.get()
    }

    /// The offset of grain `index`.
    pub(crate) const fn grain_offset(&self, index: u32) -> usize {
        self.grains_offset + self.bytes(index)
    }

    /// The grain at an offset; `None` if that is before grain zero.
    #[inline]
    pub(crate) fn grain_at(&self, offset: usize) -> Option<u32> {
        let offset = offset.checked_sub(self.grains_offset)?;
        u32::try_from(offset >> self.grain.get().ilog2()).ok()
    }

    /// The number of whole grains in the first `size` bytes.
    pub(crate) fn grains_within(&self, size: usize) -> u32 {
        self.grain_at(size).map_or(0, |grains| grains.min(self.grains))
    }

    /// The size of the whole pages of table that contain `entries` entries.
    pub(crate) fn table_bytes(&self, entries: u32) -> usize {
        let bytes = (entries as usize).saturating_mul(size_of::<Tract>());
        self.page.round_up(bytes).map_or(self.table_size, |bytes| bytes.min(self.table_size))
    }

    /// The bytes from the first to the last region.
    pub(crate) const fn size(&self) -> usize {
        self.grain_offset(self.grains)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    /// Up to 16 GiB, or 1 GiB where addresses have 32 bits.
    const SIZES: usize = usize::MAX >> if usize::BITS == 32 { 2 } else { 30 };

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn regions_do_not_overlap(size in 1..=SIZES, grain in 12u32..22, huge in any::<bool>(), is_memory in any::<bool>()) {
            let power = |exponent: u32| Align::new(1 << exponent).unwrap();
            let (grain, page) = (power(grain), power(12));
            let align = if huge { grain.max(power(21)) } else { grain };
            if let Some(regions) = Regions::new(size, grain, align, page, is_memory) {
                prop_assert!(regions.table_size + regions.descriptors_size <= regions.grains_offset);
                prop_assert!(regions.grains_offset % align.get() == 0);
                prop_assert!(regions.size() <= size);
                prop_assert!(regions.table_size >= regions.grains as usize * size_of::<Tract>());
                prop_assert_eq!(regions.table_bytes(regions.grains) % page.get(), 0);
                let last = regions.grains - 1;
                prop_assert_eq!(regions.grain_at(regions.grain_offset(last)), Some(last));
                prop_assert_eq!(regions.grain_at(regions.grains_offset - 1), None);
            } else {
                prop_assert!(size < (4 << 20) + 3 * align.get());
            }
        }
    }
}
