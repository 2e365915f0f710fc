//! An object that is taken to be finalized stays inside.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{FinalQueue, TypedMutator};

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>, queue: &FinalQueue<'_, u64>) {
    let number = mutator.try_enter(|inside| queue.take(inside)).unwrap();
}

fn main() {}
