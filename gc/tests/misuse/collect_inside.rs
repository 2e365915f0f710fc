//! No collection begins inside.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::TypedMutator;

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) {
    mutator.enter(|inside| {
        let number = inside.alloc(7_u64).unwrap();
        mutator.collect(core::time::Duration::MAX).unwrap();
        assert_eq!(*number, 7);
    });
}

fn main() {}
