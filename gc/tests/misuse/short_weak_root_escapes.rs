//! What a short weak root leads to stays inside.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{ShortWeakRooted, TypedMutator};

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>, root: &ShortWeakRooted<'_, u64>) {
    let number = mutator.enter(|inside| root.get(inside).unwrap());
}

fn main() {}
