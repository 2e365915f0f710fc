//! A mutator is not dropped inside: its points are used there.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mut mutator: TypedMutator<'_, '_, A, B>) {
    mutator.enter(|inside| {
        drop(mutator);
        inside.alloc(7_u64).unwrap();
    });
}

fn main() {}
