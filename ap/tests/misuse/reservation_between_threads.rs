//! A reservation stays on its thread.

use tripoint_ap::Reservation;
use tripoint_core::PoolClass;

fn send<T: Send>(_: T) {}

fn misuse<P: PoolClass + Sync>(reservation: Reservation<P>) {
    send(reservation);
}

fn main() {}
