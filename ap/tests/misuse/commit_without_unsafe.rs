//! Committing asserts that the object is initialised.

use tripoint_ap::Reservation;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(reservation: Reservation<P>) {
    let _ = reservation.commit();
}

fn main() {}
