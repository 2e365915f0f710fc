//! Pools whose objects move (design/gc.md `.move`, `.req.move`, `.req.complete`).

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use crate::common::{
    Raise, Slots, WORD, layout, make, make_with, name, point, pool, reference, with_heap, write,
};
use tripoint_core::{Arena, Check, CheckLevel, PoolClass};
use tripoint_gc::{Message, Moved, MovedLeaf, Tag, Traced};

const ALL: Duration = Duration::MAX;

#[test]
fn objects_move_and_references_follow() {
    with_heap(256 << 10, |heap| {
        let (nodes, headed, leaves) =
            (pool::<Moved>(heap, 0), pool::<Moved>(heap, 3), pool::<MovedLeaf>(heap, 0));
        let fixed = pool::<Traced>(heap, 1);
        let mut mutator = heap.register().unwrap();
        let mut points = (point(&nodes, &mutator), point(&headed, &mutator), point(&leaves, &mutator));
        let mut fixed_point = point(&fixed, &mutator);
        let slots = Slots::<2>::default();
        let tag = Tag { mask: 3, pattern: 2 };
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2, tag) }.unwrap();
        let leaf = make(&mut points.2, 1, &[slots.get(0)]).unwrap();
        let headed_node = make(&mut points.1, 2, &[leaf]).unwrap();
        let stays = make(&mut fixed_point, 3, &[headed_node, leaf]).unwrap();
        let first = make(&mut points.0, 4, &[stays, ptr::null_mut()]).unwrap();
        // SAFETY: the node has a second reference: it forms a ring.
        unsafe { crate::common::set_reference(first, 1, first) };
        slots.set(0, first.map_addr(|addr| addr | 2));
        points.0.empty();
        points.1.empty();
        points.2.empty();
        for _ in 0..3 {
            let before = slots.get(0);
            let found = mutator.collect(ALL).unwrap();
            assert_eq!(
                (found.moved, found.kept),
                ((6 + 3 + 4) * WORD, found.moved + found.refused + fixed_point.room() + 5 * WORD)
            );
            assert_ne!(slots.get(0), before, "it moved");
            assert_eq!(slots.get(0).addr() & 3, 2, "the tag stays");
            let first = slots.get(0).map_addr(|addr| addr & !3);
            // SAFETY: the slot keeps all nodes.
            unsafe {
                assert_eq!((name(first), reference(first, 1)), (4, first));
                assert_eq!((reference(first, 0), name(stays)), (stays, 3));
                let (headed_now, leaf_now) = (reference(stays, 0), reference(stays, 1));
                assert_ne!((headed_now, leaf_now), (headed_node, leaf));
                assert_eq!((name(headed_now), name(leaf_now)), (2, 1));
                assert_eq!(reference(headed_now, 0), leaf_now, "one copy of each");
            }
        }
        slots.set(0, ptr::null_mut());
        fixed_point.empty();
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        let total = nodes.header().total() + headed.header().total() + leaves.header().total();
        assert_eq!(total, 0, "all segments are returned");
    });
}

/// Objects that lie scattered are side by side afterwards.
#[test]
fn survivors_are_moved_together() {
    // Large nodes take as many segments as more small ones would. One of each that many is kept.
    const REFERENCES: usize = if cfg!(miri) { 18 } else { 0 };
    const SIZE: usize = (2 + REFERENCES) * WORD;
    const EACH: usize = if cfg!(miri) { 10 } else { 100 };
    with_heap(256 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<20>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 20, Tag::default()) }.unwrap();
        for index in 0..20 * EACH {
            let node = make(&mut point, index, &[ptr::null_mut(); REFERENCES]).unwrap();
            if index % EACH == 0 {
                slots.set(index / EACH, node);
            }
        }
        point.empty();
        let before = pool.header().total();
        assert_eq!(mutator.collect(ALL).unwrap().moved, 20 * SIZE);
        assert!(before >= 8 * pool.header().total(), "{before} bytes, {} now", pool.header().total());
        let mut addrs: Vec<_> = (0..20).map(|slot| slots.get(slot).addr()).collect();
        addrs.sort_unstable();
        assert!(addrs.windows(2).all(|pair| pair[1] - pair[0] == SIZE), "{addrs:?}");
    });
}

/// What an ambiguous word points into stays where it is, and the rest of its segment is free.
#[test]
fn ambiguous_words_nail_what_they_point_into() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Moved>(heap, 1);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let (slots, word) = (Slots::<3>::default(), Cell::new(0_usize));
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _slots = unsafe { heap.root_table(slots.base(), 3, Tag::default()) }.unwrap();
        // SAFETY: the word outlives the root, and only this thread uses it.
        let _word = unsafe { heap.root_ambiguous(NonNull::from(&word).cast(), 1) }.unwrap();
        let nodes = [1, 2, 3].map(|name| make(&mut point, name, &[ptr::null_mut()]).unwrap());
        point.empty();
        for (slot, node) in nodes.into_iter().enumerate() {
            slots.set(slot, node);
            // SAFETY: each node has a reference: here to the one that does not move.
            unsafe { crate::common::set_reference(node, 0, nodes[1]) };
        }
        word.set(nodes[1].addr() + WORD + 3);
        for _ in 0..3 {
            let before = [slots.get(0), slots.get(1), slots.get(2)];
            let found = mutator.collect(ALL).unwrap();
            assert_eq!((found.moved, found.kept, found.refused), (8 * WORD, 12 * WORD, 0));
            assert!(before[0] != slots.get(0) && before[2] != slots.get(2), "the others moved");
            assert_eq!(slots.get(1), nodes[1], "it is nailed");
            for slot in 0..3 {
                // SAFETY: the slots keep the nodes.
                let (name, to) = unsafe { (name(slots.get(slot)), reference(slots.get(slot), 0)) };
                assert_eq!((name, to), (slot + 1, nodes[1]));
            }
            assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
        }
        word.set(0);
        assert_eq!(mutator.collect(ALL).unwrap().moved, 12 * WORD);
        assert_ne!(slots.get(1), nodes[1], "it is not nailed any more");
    });
}

/// A function may pass ambiguous references after exact ones to the same objects.
#[test]
fn ambiguous_references_of_functions_come_first() {
    /// # Safety
    /// - `data` leads to a slot.
    unsafe fn scan_both(data: *mut (), scan: &mut tripoint_gc::Scan<'_>) {
        // SAFETY: the caller promises a slot.
        let slot = unsafe { &mut *data.cast::<*mut u8>() };
        scan.fix(slot);
        scan.fix_ambiguous(slot.addr());
    }

    with_heap(64 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        let node = make(&mut point, 1, &[]).unwrap();
        slots.set(0, node);
        point.empty();
        // SAFETY: the slot outlives the root, and only this thread uses it.
        let _root = unsafe { heap.root_function(scan_both, slots.base().as_ptr().cast()) }.unwrap();
        let found = mutator.collect(ALL).unwrap();
        assert_eq!((found.moved, found.kept, slots.get(0)), (0, 2 * WORD, node));
    });
}

#[test]
fn objects_with_a_segment_of_their_own_stay() {
    const LARGE: usize = 600;
    with_heap(256 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let small = make(&mut point, 1, &[]).unwrap();
        let large = make(&mut point, 2, &[small; LARGE]).unwrap();
        slots.set(0, large);
        point.empty();
        let found = mutator.collect(ALL).unwrap();
        assert_eq!((found.moved, found.kept), (2 * WORD, (4 + LARGE) * WORD));
        assert_eq!(slots.get(0), large);
        // SAFETY: the slot keeps both.
        let moved = unsafe { reference(large, LARGE - 1) };
        assert_ne!(moved, small);
        // SAFETY: the slot keeps both.
        assert_eq!(unsafe { (name(moved), reference(large, 0)) }, (1, moved));
    });
}

/// Memory for copies is refused at the first request, at the second, and so on: then objects stay, and nothing is lost.
#[test]
fn collections_without_memory_for_copies_mark_in_place() {
    // Large nodes take as many segments as more small ones would.
    const NODES: usize = if cfg!(miri) { 50 } else { 200 };
    const REFERENCES: usize = if cfg!(miri) { 62 } else { 14 };
    let mut moved = Vec::new();
    for room in 0_usize.. {
        let mut is_all = false;
        with_heap(256 << 10, |heap| {
            let pool = pool::<Moved>(heap, 0);
            let mut mutator = heap.register().unwrap();
            let mut point = point(&pool, &mutator);
            let slots = Slots::<1>::default();
            // SAFETY: the slots outlive the root, and only this thread uses them.
            let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
            for index in 0..NODES {
                let reference = |index: usize| if index == 0 { slots.get(0) } else { ptr::null_mut() };
                slots.set(0, make_with(&mut point, index, REFERENCES, reference).unwrap());
            }
            point.empty();
            // Of what is left, as many segments as there is to be room.
            let other = heap.arena().register().unwrap();
            let mut taken = Vec::new();
            while let Ok(block) = heap.arena().alloc_tracts(4 << 10, other) {
                taken.push(block);
            }
            for block in taken.drain(..).take(room) {
                // SAFETY: these tracts were just allocated, and nothing uses them.
                unsafe { heap.arena().free_tracts(block, other) };
            }
            let found = mutator.collect(ALL).unwrap();
            assert_eq!(found.kept, NODES * (2 + REFERENCES) * WORD);
            assert_eq!(found.moved + found.refused, found.kept, "what was not moved is reported");
            is_all = found.refused == 0;
            moved.push(found.moved);
            let mut node = slots.get(0);
            for index in (0..NODES).rev() {
                // SAFETY: the slot keeps all nodes of the list.
                assert_eq!(unsafe { name(node) }, index);
                // SAFETY: the slot keeps all nodes of the list.
                node = unsafe { reference(node, 0) };
            }
            assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
            slots.set(0, ptr::null_mut());
            assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
            // SAFETY: the pool has only tracts that nothing uses.
            unsafe { heap.arena().unregister(other) };
        });
        if is_all {
            break;
        }
    }
    assert!(moved[0] == 0 && moved.len() > 4 && moved.is_sorted(), "{moved:?}");
}

/// A reservation of a leaf that is held over a collection stands, and stays where it is.
#[test]
fn what_is_reserved_stays() {
    with_heap(64 << 10, |heap| {
        let (nodes, leaves) = (pool::<Moved>(heap, 0), pool::<MovedLeaf>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let slots = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        let before = [make(&mut node_point, 1, &[]).unwrap(), make(&mut leaf_point, 2, &[]).unwrap()];
        slots.set(0, before[0]);
        slots.set(1, before[1]);
        let node = node_point.reserve(layout(0, 0)).unwrap();
        let leaf = leaf_point.reserve(layout(0, 0)).unwrap();
        // SAFETY: that many bytes were reserved.
        unsafe { write(node.as_ptr().cast(), node.size(), 3, &[]) };
        // SAFETY: that many bytes were reserved.
        unsafe { write(leaf.as_ptr().cast(), leaf.size(), 4, &[]) };
        assert_eq!(mutator.collect(ALL).unwrap().moved, 4 * WORD);
        // SAFETY: a whole node.
        assert!(unsafe { node.commit() }.is_err(), "it may have references that were not seen");
        // SAFETY: a whole node.
        let leaf = unsafe { leaf.commit() }.unwrap().as_ptr();
        // SAFETY: it was just committed.
        assert_eq!(unsafe { name(leaf) }, 4);
        assert!(before[0] != slots.get(0) && before[1] != slots.get(1), "those in front of them moved");
        slots.set(0, leaf);
        leaf_point.empty();
        node_point.empty();
        assert_eq!(mutator.collect(ALL).unwrap().kept, 4 * WORD);
        // SAFETY: the slots keep both.
        assert_eq!(unsafe { (name(slots.get(0)), name(slots.get(1))) }, (4, 2));
    });
}

/// Threads that are no mutators may look at a pool at any time: they wait while objects move.
#[test]
fn pools_are_looked_at_while_objects_move() {
    let (rounds, nodes) = if cfg!(miri) { (3, 30) } else { (300, 200) };
    with_heap(256 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        for index in 0..nodes {
            slots.set(0, make(&mut point, index, &[slots.get(0)]).unwrap());
        }
        point.empty();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
                    let mut free = 0;
                    pool.walk_free(&mut |gap| free += gap.size());
                    assert!(free <= pool.header().high_water());
                    thread::yield_now();
                }
            });
            let _done = Raise(&is_done);
            for _ in 0..rounds {
                assert_eq!(mutator.collect(ALL).unwrap().moved, nodes * 3 * WORD);
            }
        });
    });
}

/// Weak references, and what is to be finalized, follow objects that move.
#[test]
fn weak_references_and_finalization_follow() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Moved>(heap, 1);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let (slots, weak) = (Slots::<1>::default(), Slots::<3>::default());
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _slots = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _weak = unsafe { heap.root_weak(weak.base(), 3, Tag::default()) }.unwrap();
        let nodes = [1, 2, 3].map(|name| make(&mut point, name, &[]).unwrap());
        point.empty();
        slots.set(0, nodes[0]);
        for (slot, node) in nodes.into_iter().enumerate() {
            weak.set(slot, node);
        }
        mutator.finalize(NonNull::new(nodes[0]).unwrap()).unwrap();
        mutator.finalize(NonNull::new(nodes[1]).unwrap()).unwrap();
        let found = mutator.collect(ALL).unwrap();
        assert_eq!((found.moved, found.kept), (6 * WORD, 6 * WORD), "the second is kept to be finalized");
        assert_ne!(slots.get(0), nodes[0]);
        assert_eq!([weak.get(0), weak.get(2)], [slots.get(0), ptr::null_mut()]);
        let Some(Message::Finalizable(second)) = mutator.next_message() else { panic!("it is dead") };
        assert_eq!(second.as_ptr(), weak.get(1));
        // SAFETY: it was kept to be finalized.
        assert_eq!(unsafe { name(second.as_ptr()) }, 2);
        slots.set(0, ptr::null_mut());
        assert_eq!(mutator.collect(ALL).unwrap().kept, 3 * WORD);
        let Some(Message::Finalizable(first)) = mutator.next_message() else { panic!("it is dead") };
        // SAFETY: it was kept to be finalized.
        assert_eq!(unsafe { name(first.as_ptr()) }, 1, "it was followed twice");
        assert_eq!(mutator.next_message(), None);
    });
}

#[test]
fn addresses_hold_where_no_class_moves_objects() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut dependency = mutator.reset_dependency();
        dependency.add(make(&mut point(&pool, &mutator), 1, &[]).unwrap());
        for _ in 0..20 {
            assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        }
        assert!(!mutator.is_stale(dependency), "it died, and did not move");
    });
}

/// (design/gc.md `.location.history`)
#[test]
fn dependencies_on_objects_that_move_are_stale() {
    with_heap(64 << 10, |heap| {
        let (moving, fixed) = (pool::<Moved>(heap, 0), pool::<Traced>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut moving_point, mut fixed_point) = (point(&moving, &mutator), point(&fixed, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _slots = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        slots.set(0, make(&mut fixed_point, 1, &[]).unwrap());
        let mut dependency = mutator.reset_dependency();
        dependency.add(slots.get(0));
        mutator.collect(ALL).unwrap();
        assert!(!mutator.is_stale(dependency), "nothing moved");
        slots.set(0, make(&mut moving_point, 2, &[]).unwrap());
        dependency.add(slots.get(0));
        assert!(!mutator.is_stale(dependency));
        mutator.collect(ALL).unwrap();
        assert!(mutator.is_stale(dependency));
    });
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "where no object is")]
fn an_exact_reference_to_no_object_is_averted() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        // In the node, at a word that is zero.
        slots.set(0, make(&mut point, 0, &[]).unwrap().wrapping_add(WORD));
        mutator.collect(ALL).unwrap();
    });
}

/// Registering is safe, so whatever it is passed is not followed.
#[test]
fn a_place_without_an_object_is_not_finalized() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        slots.set(0, make(&mut point, 1, &[]).unwrap());
        slots.set(1, make(&mut point, 2, &[slots.get(0)]).unwrap());
        // A word of a node that leads to the other, and memory behind both that was never written.
        for words in [2, 64] {
            mutator.finalize(NonNull::new(slots.get(1).wrapping_add(words * WORD)).unwrap()).unwrap();
        }
        point.empty();
        mutator.collect(ALL).unwrap();
        (0..2).for_each(|slot| slots.set(slot, ptr::null_mut()));
        mutator.collect(ALL).unwrap();
        assert_eq!(mutator.next_message(), None);
    });
}
