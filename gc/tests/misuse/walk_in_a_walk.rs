//! What a walk shows is no moment for a collection, or for another walk.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::Stopped;

fn misuse<A: Arena, B: BarrierPair>(stopped: &mut Stopped<'_, '_, A, B>) {
    stopped.walk_objects(|_| {
        stopped.collect();
    });
    stopped.walk_roots(|_| stopped.walk_segments(|_| ()));
}

fn main() {}
