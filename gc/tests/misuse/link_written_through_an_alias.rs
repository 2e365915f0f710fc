//! An object is changed by `Link::set` alone.

use tripoint_gc::{Gc, Link};

fn misuse<'g>(link: Gc<'g, Link<'g, u64>>) {
    *link = Link::new(None);
}

fn main() {}
