//! Typed objects of a heap of their own, and lists of them, for tests.
#![allow(dead_code, reason = "not every file of tests uses all")]

use core::time::Duration;

use tripoint_core::SymmetricFence;
use tripoint_gc::{Gc, Inside, SweptOptions, TypedMutator, TypedObjects, object_types};

use crate::common::{Arena, TestHeap, with_heap};

pub(crate) const ALL: Duration = Duration::MAX;

pub(crate) type TestObjects<'m> = TypedObjects<'m, Arena<'m>>;
pub(crate) type In<'g, 'm> = Inside<'g, Arena<'m>, SymmetricFence>;

object_types! {
    /// An item of a list.
    pub(crate) struct Item<'g> {
        pub(crate) name: usize,
        pub(crate) copy: usize,
        pub(crate) next: Option<Gc<'g, Item<'g>>>,
    }
}

pub(crate) fn objects<'m>(heap: &'m TestHeap<'m>) -> TestObjects<'m> {
    TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap()
}

/// Runs `test` with objects in a heap of their own, and checks that all is freed in the end.
pub(crate) fn with_objects(size: usize, test: impl FnOnce(&TestObjects<'_>)) {
    with_heap(size, |heap| {
        let objects = objects(heap);
        test(&objects);
        heap.collect(ALL).unwrap();
        assert_eq!(objects.sizes().total, 0);
    });
}

pub(crate) fn list<'g, 'm>(
    inside: &In<'g, 'm>,
    names: impl Iterator<Item = usize>,
) -> Option<Gc<'g, Item<'g>>> {
    let mut next = None;
    for name in names {
        next = Some(inside.alloc(Item { name, copy: name, next }).unwrap());
    }
    next
}

pub(crate) fn names<'g>(list: Option<Gc<'g, Item<'g>>>) -> Vec<usize> {
    core::iter::successors(list, |item| item.next)
        .map(|item| {
            assert_eq!(item.name, item.copy);
            item.name
        })
        .collect()
}

/// Collects with no buffer attached: what is kept then is in objects.
pub(crate) fn kept<'m>(mutator: &mut TypedMutator<'_, 'm, Arena<'m>>) -> usize {
    mutator.empty();
    mutator.collect(ALL).unwrap().kept
}
