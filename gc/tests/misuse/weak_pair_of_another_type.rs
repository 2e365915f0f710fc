//! A weak pair is set to a key and a value of its types.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{Inside, WeakPair};

fn misuse<'g, A: Arena + Clone, B: BarrierPair>(inside: &Inside<'g, A, B>, pair: &WeakPair<'g, str, u64>) {
    let key = inside.text("key").unwrap();
    pair.set(inside, (key, key));
}

fn main() {}
