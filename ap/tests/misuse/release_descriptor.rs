//! Only its owner may release a descriptor: the next owner would share its memory.

use tripoint_ap::AllocationPoint;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(point: &AllocationPoint<P>) {
    point.buffer().node().release();
}

fn main() {}
