//! Heaps under stress: every allocation collects, what may move moves, and what is stale is seen to be
//! (design/gc.md `.req.stress`, `.stress`).

use core::ptr;
use core::time::Duration;
use std::collections::BTreeSet;

use crate::common::{Point, Slots, TestHeap, WORD, make, make_with, name, point, pool, reference, with_heap};
use tripoint_core::{Check, CheckLevel, Error, PoolClass};
use tripoint_gc::{
    Cause, Kind, Leaf, Moved, MovedLeaf, Policy, SweptOptions, Tag, Traced, TypedObjects, WeakSlots,
};

/// A word of freed memory under stress.
const POISON: usize = usize::from_ne_bytes([0xdd; WORD]);

const ALL: Duration = Duration::MAX;

/// A heap in which no collection is due but by stress.
fn with_quiet_heap(test: impl FnOnce(&TestHeap<'_>)) {
    with_heap(256 << 10, |heap| {
        heap.set_policy(Policy::with_capacity(usize::MAX));
        test(heap);
    });
}

/// Adds a node to the front of a list of which slot 0 has the first.
fn push<K: Kind<crate::common::Nodes>>(point: &mut Point<'_, '_, K>, slots: &Slots<1>, name: usize) {
    slots.set(0, make_with(point, name, 1, |_| slots.get(0)).unwrap());
}

/// The names of a list, from its first node on.
fn names(first: *mut u8) -> Vec<usize> {
    let (mut names, mut next) = (Vec::new(), first);
    while !next.is_null() {
        // SAFETY: nodes of a list are in the arena, whether they are kept or not, and have one reference.
        names.push(unsafe { name(next) });
        // SAFETY: nodes of a list are in the arena, whether they are kept or not, and have one reference. That of one that was
        // freed is poison, or nothing that this test follows.
        next = unsafe { reference(next, 0) };
    }
    names
}

fn every_allocation_collects<K: Kind<crate::common::Nodes>>(moves: bool) {
    const COUNT: usize = if cfg!(miri) { 8 } else { 100 };
    with_quiet_heap(|heap| {
        let pool = pool::<K>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        make(&mut point, 0, &[ptr::null_mut()]).unwrap();
        assert!(heap.last_collection().is_none() && point.room() > 0);
        point.empty();

        let stressed = heap.stress();
        let mut places = BTreeSet::new();
        for index in 0..COUNT {
            let node = make(&mut point, index, &[ptr::null_mut()]).unwrap();
            assert_eq!(point.room(), 0, "a buffer has room for one object");
            if index == 0 {
                slots.set(0, node);
            }
            let last = heap.last_collection().unwrap();
            assert_eq!((last.number, last.cause), (index as u64 + 1, Cause::Stress));
            assert_eq!((last.kept, last.moved != 0), (3 * WORD * index.min(1), moves && index != 0));
            assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
            places.insert(slots.get(0).addr());
        }
        assert_eq!(places.len() > COUNT / 2, moves, "it moves on and on: {}", places.len());
        stressed.release();
        make(&mut point, 0, &[ptr::null_mut()]).unwrap();
        assert_eq!((heap.counts().collections.get(), point.room() > 0), (COUNT as u64, true));
        drop(root);
        drop(point);
        drop(mutator);
        heap.collect(ALL).unwrap();
        assert_eq!(pool.sizes().total, 0);
    });
}

#[test]
fn every_allocation_collects_in_every_class() {
    every_allocation_collects::<Traced>(false);
    every_allocation_collects::<Leaf>(false);
    every_allocation_collects::<WeakSlots>(false);
    every_allocation_collects::<Moved>(true);
    every_allocation_collects::<MovedLeaf>(true);
}

/// Makes a list of three nodes: with each node in a root before the next is made, or, which is wrong, in a variable.
fn list_of_three<K: Kind<crate::common::Nodes>>(heap: &TestHeap<'_>, forgets: bool) -> Vec<usize> {
    let pool = pool::<K>(heap, 0);
    let mutator = heap.register().unwrap();
    let mut point = point(&pool, &mutator);
    let slots = Slots::<1>::default();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
    if !forgets {
        (1..=3).for_each(|name| push(&mut point, &slots, name));
        return names(slots.get(0));
    }
    let mut variable = ptr::null_mut();
    for name in 1..=3 {
        variable = make(&mut point, name, &[variable]).unwrap();
    }
    let mut found = Vec::new();
    while !variable.is_null() && variable.addr() != POISON {
        // SAFETY: the node was made in the arena, whose memory can be read.
        found.push(unsafe { name(variable) });
        // SAFETY: the node was made in the arena, whose memory can be read, and has one reference.
        variable = unsafe { reference(variable, 0) };
    }
    found
}

/// The control: without stress a program that forgets a root is right by chance.
#[test]
fn a_root_that_is_forgotten_is_found_at_once() {
    let cases = [list_of_three::<Traced>, list_of_three::<Moved>];
    for run in cases {
        with_quiet_heap(|heap| assert_eq!(run(heap, false), [3, 2, 1]));
        with_quiet_heap(|heap| assert_eq!(run(heap, true), [3, 2, 1], "nothing shows"));
        with_quiet_heap(|heap| {
            let _stressed = heap.stress();
            assert_eq!(run(heap, false), [3, 2, 1], "a program that is right");
        });
        with_quiet_heap(|heap| {
            let _stressed = heap.stress();
            assert_eq!(run(heap, true), [3, POISON], "the second is poison, and has no third");
        });
    }
}

/// A program that keeps the old address of a node that has moved, in an object.
fn store_a_stale_address(heap: &TestHeap<'_>) {
    let pool = pool::<Moved>(heap, 0);
    let mutator = heap.register().unwrap();
    let mut point = point(&pool, &mutator);
    let slots = Slots::<1>::default();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
    let first = make(&mut point, 1, &[]).unwrap();
    slots.set(0, first);
    slots.set(0, make(&mut point, 2, &[first]).unwrap());
    make(&mut point, 3, &[]).unwrap();
}

#[test]
fn a_stale_address_is_not_seen_without_stress() {
    with_quiet_heap(store_a_stale_address);
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "where no object is"))]
fn a_stale_address_is_averted_under_stress() {
    with_quiet_heap(|heap| {
        let _stressed = heap.stress();
        store_a_stale_address(heap);
    });
}

/// Memory of what died is used again only when all other free memory was.
#[test]
fn freed_memory_is_used_again_late() {
    // Miri has few nodes, which are large.
    const REFERENCES: usize = if cfg!(miri) { 30 } else { 1 };
    with_quiet_heap(|heap| {
        let pool = pool::<Traced>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let _stressed = heap.stress();
        slots.set(0, make(&mut point, 0, &[ptr::null_mut(); REFERENCES]).unwrap());
        let free = pool.sizes().free / ((2 + REFERENCES) * WORD);
        let mut places = BTreeSet::new();
        for count in 1..3 * free {
            let node = make(&mut point, 1, &[ptr::null_mut(); REFERENCES]).unwrap();
            places.insert(node);
            assert_eq!(places.len(), count.min(free), "of {free} places");
        }
        assert_eq!(names(slots.get(0)), [0], "what is kept stays");
    });
}

/// All of it can be repeated: the same places, and the same collections.
#[test]
fn stress_is_deterministic() {
    const COUNT: usize = if cfg!(miri) { 12 } else { 300 };
    let run = || {
        let mut seen = Vec::new();
        with_quiet_heap(|heap| {
            let (nodes, leaves) = (pool::<Moved>(heap, 1), pool::<Leaf>(heap, 0));
            let mutator = heap.register().unwrap();
            let mut points = (point(&nodes, &mutator), point(&leaves, &mutator));
            let slots = Slots::<1>::default();
            // SAFETY: the slots outlive the root, and only this thread uses them.
            let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
            let _stressed = heap.stress();
            let base = make(&mut points.1, 0, &[]).unwrap().addr();
            for index in 0..COUNT {
                if index % (COUNT / 6) == 0 {
                    slots.set(0, ptr::null_mut());
                }
                push(&mut points.0, &slots, index);
                let leaf = make(&mut points.1, index, &[]).unwrap().addr();
                let last = heap.last_collection().unwrap();
                seen.push((slots.get(0).addr().wrapping_sub(base), leaf.wrapping_sub(base), last));
            }
        });
        seen
    };
    assert_eq!(run(), run());
}

#[test]
fn parked_heaps_do_not_collect_under_stress() {
    with_quiet_heap(|heap| {
        let pool = pool::<Traced>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let stresses = [heap.stress(), heap.stress()];
        assert!(heap.is_due());
        let parked = heap.park();
        let first = make(&mut point, 1, &[]).unwrap();
        let second = make(&mut point, 2, &[first]).unwrap();
        assert_eq!(heap.counts().collections.get(), 0);
        assert_eq!((point.room(), names_of_two(second)), (0, [2, 1]));
        parked.release();
        for stressed in stresses {
            let before = heap.counts().collections.get();
            make(&mut point, 3, &[]).unwrap();
            assert_eq!(heap.counts().collections.get(), before + 1);
            drop(stressed);
        }
        assert!(!heap.is_due());
        make(&mut point, 4, &[]).unwrap();
        assert_eq!(heap.counts().collections.get(), 2);
    });
}

fn names_of_two(node: *mut u8) -> [usize; 2] {
    // SAFETY: both nodes are kept, because the heap is parked, and the second is the reference of the first.
    unsafe { [name(node), name(reference(node, 0))] }
}

/// Memory that is refused is an error under stress as without, and what is kept stays.
#[test]
fn full_arenas_refuse_under_stress() {
    for moves in [false, true] {
        with_heap(32 << 10, |heap| {
            let _stressed = heap.stress();
            if moves { fill_up::<Moved>(heap) } else { fill_up::<Traced>(heap) }
        });
    }
}

fn fill_up<K: Kind<crate::common::Nodes>>(heap: &TestHeap<'_>) {
    let pool = pool::<K>(heap, 0);
    let mutator = heap.register().unwrap();
    let mut point = point(&pool, &mutator);
    let slots = Slots::<1>::default();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
    // A collection at each allocation looks at all nodes, so Miri has few that are large.
    const REFERENCES: usize = if cfg!(miri) { 254 } else { 30 };
    let mut count = 0;
    let error = loop {
        let reference = |index: usize| if index == 0 { slots.get(0) } else { ptr::null_mut() };
        match make_with(&mut point, count, REFERENCES, reference) {
            Ok(node) => slots.set(0, node),
            Err(error) => break error,
        }
        count += 1;
    };
    assert_eq!(error, Error::Limit);
    assert!(count * (2 + REFERENCES) * WORD > (32 << 10) / 2, "{count} nodes");
    assert_eq!(names(slots.get(0)), (0..count).rev().collect::<Vec<_>>());
    slots.set(0, ptr::null_mut());
    make(&mut point, 0, &[]).unwrap();
}

#[test]
fn typed_objects_are_collected_whenever_a_closure_returns() {
    with_quiet_heap(|heap| {
        let objects = TypedObjects::create(heap, SweptOptions::default()).unwrap();
        let mut mutator = objects.register().unwrap();
        let _stressed = heap.stress();
        for count in 1..if cfg!(miri) { 5 } else { 50_u64 } {
            let root = mutator.enter(|inside| {
                let text = inside.text("kept").unwrap();
                inside.text("freed").unwrap();
                objects.root(inside, text).unwrap()
            });
            assert_eq!(heap.counts().collections.get(), 2 * count - 1);
            assert_ne!(heap.last_collection().unwrap().freed, 0);
            mutator.enter(|inside| assert_eq!(&*root.get(inside).unwrap(), "kept"));
        }
        assert!(objects.sizes().total <= 128 << 10);
    });
}
