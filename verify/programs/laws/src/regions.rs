//! The parts of the range that an arena of the operating system reserves.

#[path = "../../../../arena-vm/src/regions.rs"]
mod parts;

use crate::arena::tract_table::Tract;
use crate::law::laws;
use crate::values::align::Align;
use parts::Regions;

const PAGE: Align = Align::new(4 << 10).unwrap();
/// A grain of 64 KiB.
const GRAIN: Align = Align::new(64 << 10).unwrap();
/// A huge page, to which grains may be aligned.
const HUGE: Align = Align::new(2 << 20).unwrap();

/// The regions of `size` bytes; grain zero is aligned to a huge page, or to a grain. Addresses may be memory.
fn regions(size: usize, is_huge: bool, is_memory: bool) -> Option<Regions> {
    Regions::new(size, GRAIN, if is_huge { HUGE } else { GRAIN }, PAGE, is_memory)
}

laws! {
    /// Table, descriptors and grains follow each other, and end within the range.
    fn regions_do_not_overlap(size: usize, is_huge: bool, is_memory: bool) given true; {
        regions(size, is_huge, is_memory).is_none_or(|regions| {
            regions.table_size <= regions.grains_offset
                && regions.descriptors_size <= regions.grains_offset - regions.table_size
                && regions.grains_offset <= size
                && regions.grains as usize <= (size - regions.grains_offset) / GRAIN.get()
        })
    }

    fn every_grain_has_an_entry(size: usize, is_huge: bool, is_memory: bool) given true; {
        regions(size, is_huge, is_memory).is_none_or(|regions| regions.grains as usize <= regions.table_size / size_of::<Tract>())
    }

    fn regions_are_aligned(size: usize, is_huge: bool, is_memory: bool) given true; {
        regions(size, is_huge, is_memory).is_none_or(|regions| {
            regions.table_size.is_multiple_of(4 << 10)
                && regions.descriptors_size.is_multiple_of(4 << 10)
                && regions.grains_offset.is_multiple_of(if is_huge { 2 << 20 } else { 64 << 10 })
        })
    }

    fn a_grain_is_found_by_each_of_its_bytes(size: usize, index: u32, byte: usize, is_memory: bool)
    given byte < 64 << 10 && regions(size, false, is_memory).is_some_and(|regions| index < regions.grains); {
        regions(size, false, is_memory).is_some_and(|regions| regions.grain_at(regions.grain_offset(index) + byte) == Some(index))
    }

    /// Also if the offset is so far that its grain has no number.
    fn a_far_offset_is_in_no_near_grain(size: usize, offset: usize, is_memory: bool)
    given regions(size, false, is_memory).is_some_and(|regions| offset >= regions.grains_offset); {
        regions(size, false, is_memory).is_some_and(|regions| {
            regions.grain_at(offset).is_none_or(|index| index as usize == (offset - regions.grains_offset) / GRAIN.get())
        })
    }

    fn no_grain_is_before_the_first(size: usize, offset: usize, is_memory: bool)
    given regions(size, false, is_memory).is_some_and(|regions| offset < regions.grains_offset); {
        regions(size, false, is_memory).is_some_and(|regions| regions.grain_at(offset).is_none())
    }

    fn no_range_is_without_grains(size: usize, is_huge: bool, is_memory: bool) given true; {
        regions(size, is_huge, is_memory).is_none_or(|regions| regions.grains != 0)
    }

    /// One for the table and the descriptors, which has more room than they take, and one grain.
    fn three_grains_are_enough(is_memory: bool) given true; { regions(3 * GRAIN.get(), false, is_memory).is_some() }

    fn descriptors_have_sixteen_pages_at_least(size: usize, is_huge: bool, is_memory: bool) given true; {
        regions(size, is_huge, is_memory).is_none_or(|regions| regions.descriptors_size >= 16 * PAGE.get())
    }

    fn the_table_of_some_entries_is_in_the_table(size: usize, entries: u32, is_memory: bool) given true; {
        regions(size, false, is_memory).is_none_or(|regions| {
            let bytes = regions.table_bytes(entries);
            bytes <= regions.table_size && (bytes == regions.table_size || bytes / size_of::<Tract>() >= entries as usize)
        })
    }

    fn whole_grains_within_a_size_end_there(size: usize, within: usize, is_memory: bool) given within <= size; {
        regions(size, false, is_memory).is_none_or(|regions| {
            let grains = regions.grains_within(within);
            grains == 0 || grains <= regions.grains && regions.grain_offset(grains) <= within
        })
    }
}
