//! An object takes the place of one whose type is a subtype of its own: a root of the old type would lead to it.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{Gc, Inside, Plain, Transform};

type Any = Plain<for<'a> fn(&'a str)>;
type Lasting = Plain<fn(&'static str)>;

fn misuse<'g, A: Arena + Clone, B: BarrierPair>(
    inside: &Inside<'g, A, B>,
    transform: &mut Transform<'_, A, B>,
    old: Gc<'g, Any>,
    new: Gc<'g, Lasting>,
) {
    let old: Gc<'g, Lasting> = old;
    transform.add(inside, old, new).unwrap();
}

fn main() {}
