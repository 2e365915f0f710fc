//! A root's type does not bring a lifetime inside: its object has that of the closure.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{Gc, Inside, Rooted};

fn misuse<A: Arena + Clone, B: BarrierPair>(
    inside: &Inside<'_, A, B>,
    root: &Rooted<'_, Option<Gc<'static, u64>>>,
) -> Option<Gc<'static, u64>> {
    *root.get(inside).unwrap()
}

fn main() {}
