//! Committing consumes the reservation.

use tripoint_ap::Reservation;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(reservation: Reservation<P>) {
    // SAFETY: never run.
    let first = unsafe { reservation.commit() };
    // SAFETY: never run.
    let second = unsafe { reservation.commit() };
    drop((first, second));
}

fn main() {}
