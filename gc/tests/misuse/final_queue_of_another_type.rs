//! An object is registered in a queue for its type.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{FinalQueue, Inside};

fn misuse<A: Arena + Clone, B: BarrierPair>(inside: &Inside<'_, A, B>, queue: &FinalQueue<'_, u64>) {
    queue.register(inside, inside.text("seven").unwrap()).unwrap();
}

fn main() {}
