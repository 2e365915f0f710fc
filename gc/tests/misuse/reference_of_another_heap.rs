//! An object of a heap does not refer to an object of another.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedObjects;

fn misuse<A: Arena + Clone, B: BarrierPair>(objects: &TypedObjects<'_, A, B>, others: &TypedObjects<'_, A, B>) {
    let (mut mutator, mut other) = (objects.register().unwrap(), others.register().unwrap());
    mutator.enter(|inside| {
        let number = inside.alloc(7_u64).unwrap();
        other.enter(|inside| inside.alloc(Some(number)).map(drop)).unwrap();
    });
}

fn main() {}
