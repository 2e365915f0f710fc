//! A cell of another crate has no reference: nothing would look at it.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{Gc, Plain, TypedMutator};

fn misuse<A: Arena + Clone, B: BarrierPair>(mutator: &mut TypedMutator<'_, '_, A, B>) {
    mutator.enter(|inside| {
        let number = inside.alloc(7_u64).unwrap();
        inside.alloc(Plain(std::sync::Mutex::<Option<Gc<'_, u64>>>::new(Some(number)))).map(drop)
    }).unwrap();
}

fn main() {}
