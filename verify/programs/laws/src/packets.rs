//! Numbers of packets' units, and offsets of their bytes: what a device says is checked by these.

#[path = "../../../../packets/src/error.rs"]
pub mod error;
#[path = "../../../../packets/src/units.rs"]
mod units;

use crate::law::laws;
use units::{locate, offset_of};

/// Whether that many units of a size have addresses: a pool of more is refused.
const fn exist(count: u32, size: usize) -> bool {
    count as u64 <= isize::MAX as u64 / size as u64
}

/// Whether data that are located lie in one unit of the region, and where the device said.
#[inline(always)]
const fn lie_in_one_unit<const SIZE: usize>(count: u32, offset: u64, length: u32) -> bool {
    match locate::<SIZE>(count, offset, length) {
        Ok((number, start)) => {
            number < count
                && number as u64 * SIZE as u64 + start as u64 == offset
                && start as u64 + length as u64 <= SIZE as u64
        }
        Err(_) => true,
    }
}

/// Whether data are not refused if they lie in a unit.
#[inline(always)]
fn are_located<const SIZE: usize>(count: u32, number: u32, start: u32, length: u32) -> bool {
    let offset = number as u64 * SIZE as u64 + start as u64;
    let are_in_a_unit = number < count && start < SIZE as u32 && length <= SIZE as u32 - start;
    !are_in_a_unit || matches!(locate::<SIZE>(count, offset, length), Ok(found) if found == (number, start))
}

/// A size that is no power of two.
const ODD: usize = 9 * 64;

laws! {
    fn data_lie_in_one_unit_of_a_power_of_two(count: u32, offset: u64, length: u32) given exist(count, 8192); {
        lie_in_one_unit::<64>(count, offset, length)
            && lie_in_one_unit::<128>(count, offset, length)
            && lie_in_one_unit::<256>(count, offset, length)
            && lie_in_one_unit::<512>(count, offset, length)
            && lie_in_one_unit::<1024>(count, offset, length)
            && lie_in_one_unit::<4096>(count, offset, length)
            && lie_in_one_unit::<8192>(count, offset, length)
    }

    fn located_data_lie_in_one_unit(count: u32, offset: u64, length: u32) given exist(count, 2048); {
        lie_in_one_unit::<2048>(count, offset, length)
    }

    fn data_lie_in_one_unit_of_three_cache_lines(count: u32, offset: u64, length: u32) given exist(count, 3 * 64); {
        lie_in_one_unit::<{ 3 * 64 }>(count, offset, length)
    }

    fn data_lie_in_one_unit_of_five_cache_lines(count: u32, offset: u64, length: u32) given exist(count, 5 * 64); {
        lie_in_one_unit::<{ 5 * 64 }>(count, offset, length)
    }

    fn data_lie_in_one_unit_of_seven_cache_lines(count: u32, offset: u64, length: u32) given exist(count, 7 * 64); {
        lie_in_one_unit::<{ 7 * 64 }>(count, offset, length)
    }

    fn data_lie_in_one_unit_of_nine_cache_lines(count: u32, offset: u64, length: u32) given exist(count, 9 * 64); {
        lie_in_one_unit::<{ 9 * 64 }>(count, offset, length)
    }

    fn data_lie_in_one_unit_of_a_frame(count: u32, offset: u64, length: u32) given exist(count, 24 * 64); {
        lie_in_one_unit::<{ 24 * 64 }>(count, offset, length)
    }

    fn data_in_a_unit_of_a_power_of_two_are_located(count: u32, number: u32, start: u32, length: u32)
    given exist(count, 8192); {
        are_located::<64>(count, number, start, length)
            && are_located::<128>(count, number, start, length)
            && are_located::<256>(count, number, start, length)
            && are_located::<512>(count, number, start, length)
            && are_located::<1024>(count, number, start, length)
            && are_located::<4096>(count, number, start, length)
            && are_located::<8192>(count, number, start, length)
    }

    fn data_in_a_unit_are_located(count: u32, number: u32, start: u32, length: u32)
    given exist(count, 2048) && number < count; {
        are_located::<2048>(count, number, start, length)
    }

    fn a_unit_begins_where_it_is_located(count: u32, number: u32) given exist(count, ODD); {
        match offset_of::<ODD>(count, number) {
            Some(offset) => number < count && matches!(locate::<ODD>(count, offset, ODD as u32), Ok(found) if found == (number, 0)),
            None => number >= count,
        }
    }
}
