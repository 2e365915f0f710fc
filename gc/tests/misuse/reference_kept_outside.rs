//! A reference is not kept in a variable from outside the closure.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) {
    let mut kept = None;
    mutator.enter(|inside| kept = Some(inside.alloc(7_u64).unwrap()));
    mutator.enter(|_| kept.map(|number| *number));
}

fn main() {}
