//! A reference in an object that is no link does not change.

use tripoint_gc::{Gc, object_types};

object_types! {
    struct Item<'g> {
        next: Option<Gc<'g, Item<'g>>>,
    }
}

fn misuse<'g>(item: Gc<'g, Item<'g>>) {
    item.get().next = None;
}

fn main() {}
