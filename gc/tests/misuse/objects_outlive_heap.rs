//! TypedObjects end before their heap does.

use tripoint_core::Arena;
use tripoint_gc::{Heap, HeapOptions, TypedObjects, SweptOptions};

fn misuse<A: Arena + Clone>(arena: A) {
    let heap = Heap::create(arena, HeapOptions::default()).unwrap();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    drop(heap);
    objects.sizes();
}

fn main() {}
