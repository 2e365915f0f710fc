//! A reference is no result of the closure in which it was made.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) {
    let number = mutator.enter(|inside| inside.alloc(7_u64).unwrap());
}

fn main() {}
