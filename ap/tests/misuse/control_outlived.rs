//! What a control borrows lives as long as the allocation point.

use tripoint_ap::AllocationPoint;
use tripoint_core::{BufferKind, Control, PoolClass};

#[derive(Debug)]
struct Borrows<'c>(#[allow(dead_code)] &'c u64);

impl Control for Borrows<'_> {}

fn misuse<P: PoolClass>(pool: &P) {
    let mut point = {
        let local = 7;
        AllocationPoint::create_with(pool, BufferKind::Mutator, Borrows(&local)).unwrap()
    };
    point.empty();
}

fn main() {}
