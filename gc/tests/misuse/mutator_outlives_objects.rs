//! A mutator ends before the objects do.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedObjects;

fn misuse<A: Arena + Clone, B: BarrierPair>(objects: TypedObjects<'_, A, B>) {
    let mut mutator = objects.register().unwrap();
    drop(objects);
    mutator.enter(|inside| inside.wants_stop());
}

fn main() {}
