//! A thread that goes on after the closure does not get a reference.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) {
    std::thread::scope(|scope| {
        mutator.enter(|inside| {
            let number = inside.alloc(7_u64).unwrap();
            scope.spawn(move || *number);
        });
    });
}

fn main() {}
