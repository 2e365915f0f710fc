//! An allocation point is sent to another thread only if its control can be.

use std::rc::Rc;
use tripoint_ap::AllocationPoint;
use tripoint_core::{Control, PoolClass};

#[derive(Debug)]
struct Local(#[allow(dead_code)] Rc<()>);

impl Control for Local {}

fn send<T: Send>(_: T) {}

fn misuse<P: PoolClass + Sync>(point: AllocationPoint<P, Local>) {
    send(point);
}

fn main() {}
