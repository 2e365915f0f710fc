//! An object is not borrowed after the closure.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) -> u64 {
    let number: &u64 = mutator.enter(|inside| inside.alloc(7).unwrap().get());
    *number
}

fn main() {}
