//! Only pools with frames have scopes.

use tripoint_ap::AllocationPoint;
use tripoint_core::ManualPool;

fn misuse<P: ManualPool>(point: &mut AllocationPoint<P>) {
    point.scope(|_frame| ());
}

fn main() {}
