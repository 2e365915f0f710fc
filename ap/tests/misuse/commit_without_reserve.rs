//! Only a reserve makes a reservation.

use core::ptr::NonNull;
use tripoint_ap::{AllocationPoint, Reservation};
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &mut AllocationPoint<P>, object: NonNull<u8>) {
    let end = object.as_ptr();
    let _ = Reservation { point, object, end };
}

fn main() {}
