//! A weak link of a heap is not set to an object of another.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{TypedObjects, WeakLink};

fn misuse<A: Arena + Clone, B: BarrierPair>(objects: &TypedObjects<'_, A, B>, others: &TypedObjects<'_, A, B>) {
    let (mut mutator, mut other) = (objects.register().unwrap(), others.register().unwrap());
    mutator.enter(|inside| {
        let link = inside.alloc(WeakLink::new(None)).unwrap();
        other.enter(|others| link.set(inside, others.alloc(7_u64).unwrap()));
    });
}

fn main() {}
