//! A short weak root ends before the objects do.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedObjects;

fn misuse<A: Arena + Clone, B: BarrierPair>(objects: TypedObjects<'_, A, B>) {
    let root = {
        let mut mutator = objects.register().unwrap();
        mutator.enter(|inside| objects.short_weak_root(inside, inside.alloc(7_u64).unwrap()).unwrap())
    };
    drop(objects);
    drop(root);
}

fn main() {}
