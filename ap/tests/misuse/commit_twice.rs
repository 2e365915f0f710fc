//! Committing consumes the reservation.

use tripoint_ap::Reservation;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(reservation: Reservation<P>) {
    let first = unsafe { reservation.commit() };
    let second = unsafe { reservation.commit() };
    drop((first, second));
}

fn main() {}
