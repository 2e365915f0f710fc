//! A root is set to objects of its type.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{Inside, Rooted};

fn misuse<A: Arena + Clone, B: BarrierPair>(inside: &Inside<'_, A, B>, root: &mut Rooted<'_, u64>) {
    root.set(inside, inside.text("seven").unwrap()).unwrap();
}

fn main() {}
