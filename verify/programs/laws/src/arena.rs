//! The lists of free runs, and how a client arena divides its memory.

/// What files of arenas name, for its size: the tests see to it that it is the product's.
pub mod tract_table {
    /// As large as an entry of the tract table, and aligned so.
    #[derive(Debug)]
    pub struct Tract([u32; 4]);
}

#[path = "../../../../core/src/arena/tract_table/run_bins.rs"]
mod run_bins;

#[path = "../../../../core/src/arena/client_arena/plan.rs"]
mod plan;

use crate::law::laws;
use crate::values::addr::ADDRESS_CEILING;
use crate::values::align::Align;
use plan::Plan;
use run_bins::{BINS, bin_of, sure};
use tract_table::Tract;

/// Grains of 4 KiB, and of 64 KiB.
const GRAINS: [Align; 2] = [Align::new(4 << 10).unwrap(), Align::new(64 << 10).unwrap()];

/// The bytes of three small grains.
const THREE: usize = 3 * GRAINS[0].get();

/// Whether the plan for this memory, if there is one, has grains of this size and no part in another.
fn is_apart(start: usize, size: usize, grain: Align) -> bool {
    Plan::new(start, size, grain)
        .is_none_or(|plan| plan.table + plan.grains as usize * size_of::<Tract>() <= plan.base)
}

/// Whether the table and the grains are aligned.
fn is_aligned(start: usize, size: usize, grain: Align) -> bool {
    Plan::new(start, size, grain).is_none_or(|plan| {
        (start + plan.table).is_multiple_of(align_of::<Tract>())
            && (start + plan.base).is_multiple_of(grain.get())
    })
}

laws! {
    fn a_run_is_in_a_list(count: u32) given count != 0; { bin_of(count) < BINS }

    /// Each list has runs: there are no more lists than powers of two.
    fn no_list_is_without_runs(bin: usize) given bin < BINS; { bin_of(1 << bin) == bin }

    /// Every run of a list has as many grains as the list says, and less than twice as many.
    fn a_list_has_runs_of_its_power_of_two(count: u32) given count != 0; {
        count >> bin_of(count) == 1
    }

    /// A run in one of the sure lists is long enough.
    fn a_sure_list_has_runs_that_are_long_enough(mask: u32, wanted: u32, run: u32)
    given wanted != 0 && run != 0 && sure(mask, wanted) >> bin_of(run) & 1 == 1; { run >= wanted }

    /// A run that is long enough and in no sure list is in the list of the request itself, which is searched.
    fn no_long_run_is_missed(mask: u32, wanted: u32, run: u32)
    given wanted != 0 && run >= wanted && mask >> bin_of(run) & 1 == 1; {
        sure(mask, wanted) >> bin_of(run) & 1 == 1 || bin_of(run) == bin_of(wanted)
    }

    fn a_sure_list_is_one_of_the_mask(mask: u32, wanted: u32) given wanted != 0; { sure(mask, wanted) & !mask == 0 }

    fn the_table_of_a_client_arena_ends_before_its_grains(start: usize, size: usize) given true; {
        is_apart(start, size, GRAINS[0])
    }

    fn the_table_of_a_client_arena_ends_before_large_grains(start: usize, size: usize) given true; {
        is_apart(start, size, GRAINS[1])
    }

    fn no_client_arena_is_without_grains(start: usize, size: usize) given true; {
        Plan::new(start, size, GRAINS[0]).is_none_or(|plan| plan.grains != 0)
    }

    /// Wherever it lies, memory of three grains has room for one behind its table, and no grain ends outside.
    fn in_32_bits_memory_of_three_grains_has_room_for_one(start: usize) given start <= ADDRESS_CEILING - THREE; {
        Plan::new(start, THREE, GRAINS[0])
            .is_some_and(|plan| plan.base + (plan.grains as usize) * GRAINS[0].get() <= THREE)
    }

    fn table_and_grains_of_a_client_arena_are_aligned(start: usize, size: usize) given true; {
        is_aligned(start, size, GRAINS[0])
    }

    fn table_and_large_grains_of_a_client_arena_are_aligned(start: usize, size: usize) given true; {
        is_aligned(start, size, GRAINS[1])
    }
}
