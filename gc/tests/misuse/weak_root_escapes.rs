//! What a weak root leads to stays inside.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{TypedMutator, WeakRooted};

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>, root: &WeakRooted<'_, u64>) {
    let number = mutator.enter(|inside| root.get(inside).unwrap());
}

fn main() {}
