//! A queue of objects to be finalized ends before the objects do.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedObjects;

fn misuse<A: Arena + Clone, B: BarrierPair>(objects: TypedObjects<'_, A, B>) {
    let queue = objects.final_queue::<u64>().unwrap();
    drop(objects);
    drop(queue);
}

fn main() {}
