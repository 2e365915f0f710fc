//! A value with references is not plain.

use tripoint_gc::{Gc, Plain, object_types};

object_types! {
    struct Item<'g> {
        number: Plain<Gc<'g, u64>>,
    }
}

fn main() {}
