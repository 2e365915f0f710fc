//! Numbers of packets' units, and offsets of their bytes: what a device says is checked by these.

#[path = "../../../../packets/src/error.rs"]
pub mod error;
#[path = "../../../../packets/src/units.rs"]
mod units;

use crate::law::laws;
use units::{locate, offset_of};

/// A usual size of units.
const EVEN: usize = 2048;
/// One that is no power of two.
const ODD: usize = 9 * 64;

/// Whether that many units of a size have addresses: a pool of more is refused.
const fn exist(count: u32, size: usize) -> bool {
    count as u64 <= isize::MAX as u64 / size as u64
}

laws! {
    /// Data that are located lie in one unit of the region, and where the device said.
    fn located_data_lie_in_one_unit(count: u32, offset: u64, length: u32) given exist(count, EVEN); {
        match locate::<EVEN>(count, offset, length) {
            Ok((number, start)) => {
                number < count && number as u64 * EVEN as u64 + start as u64 == offset && start as u64 + length as u64 <= EVEN as u64
            }
            Err(_) => true,
        }
    }

    fn located_data_lie_in_one_odd_unit(count: u32, offset: u64, length: u32) given exist(count, ODD); {
        match locate::<ODD>(count, offset, length) {
            Ok((number, start)) => {
                number < count && number as u64 * ODD as u64 + start as u64 == offset && start as u64 + length as u64 <= ODD as u64
            }
            Err(_) => true,
        }
    }

    /// Data that lie in a unit are not refused.
    fn data_in_a_unit_are_located(count: u32, number: u32, start: u32, length: u32)
    given exist(count, EVEN) && number < count && start < EVEN as u32 && length <= EVEN as u32 - start; {
        matches!(locate::<EVEN>(count, number as u64 * EVEN as u64 + start as u64, length), Ok(found) if found == (number, start))
    }

    fn a_unit_begins_where_it_is_located(count: u32, number: u32) given exist(count, ODD); {
        match offset_of::<ODD>(count, number) {
            Some(offset) => number < count && matches!(locate::<ODD>(count, offset, ODD as u32), Ok(found) if found == (number, 0)),
            None => number >= count,
        }
    }
}
