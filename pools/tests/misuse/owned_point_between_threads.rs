//! An allocation point fills from its pool, so it stays in the thread that owns the pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::{ClientArena, Owned};
use tripoint_pools::Tlsf;

type Pool<'a> = Tlsf<&'a ClientArena<'a>, Owned>;

fn send<T: Send>(_: T) {}

fn misuse(point: AllocationPoint<'_, Pool<'_>>) {
    send(&point);
    send(point);
}

fn main() {}
