//! An object takes the place of one of another type.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{Inside, Plain, Transform};

fn misuse<'g, A: Arena + Clone, B: BarrierPair>(inside: &Inside<'g, A, B>, transform: &mut Transform<'_, A, B>) {
    let (old, new) = (inside.alloc(Plain(1_u64)).unwrap(), inside.alloc(Plain(1_u32)).unwrap());
    transform.add(inside, old, new).unwrap();
}

fn main() {}
