//! Cells are not for objects: other threads reach them.

use tripoint_gc::object_types;

object_types! {
    struct Counter {
        count: core::cell::Cell<u64>,
    }
}

fn main() {}
