//! What a pinned root leads to stays inside: outside there is only its address.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{PinnedRooted, TypedMutator};

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>, root: &PinnedRooted<'_, u64>) {
    let number = mutator.enter(|inside| root.get(inside).unwrap());
}

fn main() {}
