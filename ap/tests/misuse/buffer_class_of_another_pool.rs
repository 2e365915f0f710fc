//! What a pool keeps in its buffers does not get into another pool.

use tripoint_ap::AllocationPoint;
use tripoint_core::{BufferKind, PoolClass};

fn misuse<P: PoolClass>(pool: &P, other: &P) {
    let _ = AllocationPoint::create_in(pool, BufferKind::Mutator, (), other.new_buffer());
}

fn put_in_place<P: PoolClass>(pool: &P, other: &P) {
    let _ = AllocationPoint::create_in(pool, BufferKind::Mutator, (), |own| *own = other.new_buffer());
}

fn main() {}
