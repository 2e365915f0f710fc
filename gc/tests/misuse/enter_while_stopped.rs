//! A mutator that stops the heap does not come inside.

use core::time::Duration;
use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) {
    let stopped = mutator.stop(Duration::MAX).unwrap();
    mutator.enter(|inside| inside.wants_stop());
    drop(stopped);
}

fn main() {}
