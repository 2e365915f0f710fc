//! An implementation of `Trace` by hand makes a promise.

use tripoint_gc::{Gc, Scan, Trace};

struct Item<'g>(Gc<'g, u64>);

impl Trace for Item<'_> {
    type At<'g> = Item<'g>;
    type Static = Item<'static>;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = false;

    fn trace(&mut self, _scan: &mut Scan<'_>) {}
}

fn main() {}
