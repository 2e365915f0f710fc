//! A stop stays on its thread, which then need not wait for it.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::Stopped;

fn misuse<A: Arena, B: BarrierPair>(stopped: &mut Stopped<'_, '_, A, B>) {
    std::thread::scope(|scope| {
        scope.spawn(|| stopped.collect());
    });
}

fn main() {}
