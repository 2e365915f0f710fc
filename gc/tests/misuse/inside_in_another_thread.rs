//! Threads do not allocate with the points of another.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) {
    mutator.enter(|inside| {
        std::thread::scope(|scope| {
            scope.spawn(|| inside.alloc(7_u64).map(drop));
        });
    });
}

fn main() {}
