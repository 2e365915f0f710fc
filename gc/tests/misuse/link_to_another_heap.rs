//! A link of a heap is not set to an object of another.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{Link, TypedObjects};

fn misuse<A: Arena + Clone, B: BarrierPair>(objects: &TypedObjects<'_, A, B>, others: &TypedObjects<'_, A, B>) {
    let (mut mutator, mut other) = (objects.register().unwrap(), others.register().unwrap());
    mutator.enter(|inside| {
        let link = inside.alloc(Link::new(None)).unwrap();
        other.enter(|others| link.set(inside, others.alloc(7_u64).unwrap()));
    });
}

fn main() {}
