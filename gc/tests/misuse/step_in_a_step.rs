//! A step is asked to go on, and not for another step.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::Stopped;

fn misuse<A: Arena, B: BarrierPair>(stopped: &mut Stopped<'_, '_, A, B>) {
    stopped.step(|| {
        stopped.step(|| false);
        true
    });
}

fn main() {}
