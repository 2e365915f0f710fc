//! Walks over objects and roots, and the question what keeps an object (design/gc.md `.req.walk`, `.walk.path`). Random
//! graphs are walked in `gc/tests/collecting/shadow.rs`.

use core::ptr::{self, NonNull};
use core::time::Duration;
use std::collections::BTreeSet;

use crate::common::{Nodes, Slots, WORD, layout, make, point, pool, set_reference, with_heap, write};
use tripoint_core::{Addr, Arena, PoolClass};
use tripoint_gc::{
    GENERATIONS, Kind, Leaf, Message, Moved, MovedLeaf, NoPath, PathStep, Referrer, SegmentUse, Tag, Traced,
    TypeCount, WeakSlots,
};

const ALL: Duration = Duration::MAX;

#[test]
fn objects_are_counted_by_pool_and_type() {
    count_by_pool_and_type::<Traced, Leaf>();
    count_by_pool_and_type::<Moved, MovedLeaf>();
}

fn count_by_pool_and_type<K: Kind<Nodes>, L: Kind<Nodes>>() {
    with_heap(256 << 10, |heap| {
        let (nodes, leaves) = (pool::<K>(heap, 0), pool::<L>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        for name in 0..10 {
            let leaf = make(&mut leaf_point, name, &[]).unwrap();
            make(&mut node_point, name, &[]).unwrap();
            slots.set(0, make(&mut node_point, name, &[leaf, slots.get(0)]).unwrap());
        }
        let mut stopped = mutator.stop(ALL).unwrap();
        let mut table = [TypeCount::default(); 8];
        let count = |objects, words| (objects, objects * words * WORD);
        let mut counts = |stopped: &tripoint_gc::Stopped<'_, '_, _, _>| {
            let census = stopped.census(&mut table);
            let of = |pool, name| {
                let found = census
                    .types
                    .iter()
                    .find(|entry| entry.pool == Some(pool) && entry.type_name == Some(name));
                found.map_or((0, 0), |entry| (entry.objects, entry.bytes))
            };
            let (nodes, leaves) = (nodes.header().id(), leaves.header().id());
            [
                of(nodes, "inner node"),
                of(nodes, "end"),
                of(leaves, "end"),
                (census.all.objects, census.all.bytes),
            ]
        };
        assert_eq!(counts(&stopped), [count(10, 4), count(10, 2), count(10, 2), (30, 80 * WORD)]);
        let moved = stopped.collect().moved;
        // What lies in a buffer moves as other objects do.
        assert_eq!(moved, if K::MOVES { 60 * WORD } else { 0 });
        assert_eq!(counts(&stopped), [count(10, 4), (0, 0), count(10, 2), (20, 60 * WORD)], "what is live");
        let census = stopped.census(&mut table[..1]);
        assert_eq!((census.types.len(), census.all.objects), (1, 20), "a table that is too short");
        assert_eq!(stopped.census(&mut []).all.bytes, 60 * WORD);
    });
}

/// The picture of a heap: all memory of all pools, and each byte once.
#[test]
fn segments_show_how_their_memory_is_used() {
    with_heap(256 << 10, |heap| {
        let (nodes, leaves) = (pool::<Moved>(heap, 0), pool::<Leaf>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        for name in 0..200 {
            make(&mut leaf_point, name, &[]).unwrap();
            make(&mut node_point, name, &[]).unwrap();
            slots.set(0, make(&mut node_point, name, &[slots.get(0)]).unwrap());
        }
        // One with a segment of its own, and one behind it.
        make(&mut leaf_point, 1000, &vec![ptr::null_mut(); 1000]).unwrap();
        make(&mut leaf_point, 1001, &[]).unwrap();
        for is_collected in [false, true] {
            let rooms = [node_point.room(), leaf_point.room()];
            let mut stopped = mutator.stop(ALL).unwrap();
            if is_collected {
                stopped.collect();
            }
            let mut found = Vec::new();
            stopped.walk_segments(|segment| found.push(segment));
            let mut held = [0; 2];
            for (index, (pool, class, header)) in
                [(nodes.header().id(), "AMC", nodes.header()), (leaves.header().id(), "LO", leaves.header())]
                    .into_iter()
                    .enumerate()
            {
                let own: Vec<_> = found.iter().filter(|segment| segment.pool == pool).collect();
                assert!(own.iter().all(|segment| segment.class == class && segment.overhead() > 0));
                // What moved is older, and the buffer is in the youngest generation. Others are in the last.
                let generations: BTreeSet<_> = own.iter().map(|segment| segment.generation).collect();
                let moved = if is_collected { [0, 1].as_slice() } else { &[0] };
                let expected = if class == "AMC" { moved } else { &[GENERATIONS as u8 - 1] };
                assert!(generations.iter().eq(expected), "{class}: {generations:?}");
                assert!(own.windows(2).all(|pair| pair[0].memory.limit() <= pair[1].memory.base()));
                assert_eq!(own.iter().map(|segment| segment.memory.size()).sum::<usize>(), header.total());
                held[index] = own.iter().map(|segment| segment.held).sum();
            }
            assert_eq!(held, rooms);
            let free: usize = found.iter().map(|segment| segment.free).sum();
            assert_eq!(free, nodes.sizes().free + leaves.sizes().free);
            let all = stopped.census(&mut []).all;
            let sum = |of: fn(&SegmentUse) -> usize| found.iter().map(of).sum::<usize>();
            assert_eq!(
                (sum(|segment| segment.objects), sum(|segment| segment.used)),
                (all.objects, all.bytes)
            );
            assert_eq!(all.objects, if is_collected { 200 } else { 602 });
        }
    });
}

#[test]
fn what_refers_to_an_object_is_shown() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Traced>(heap, 1);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        let end = make(&mut point, 1, &[ptr::null_mut()]).unwrap();
        // SAFETY: the node was just made, and has a reference.
        unsafe { set_reference(end, 0, end) };
        let twice = make(&mut point, 2, &[end, end]).unwrap();
        slots.set(0, end);
        slots.set(1, twice);
        let mut stopped = mutator.stop(ALL).unwrap();
        let [end, twice] = [end, twice].map(|node| stopped.object_at(node.wrapping_add(WORD)).unwrap());
        let mut found = Vec::new();
        stopped.walk_referrers(end, |referrer| found.push(referrer));
        assert_eq!(found[0], Referrer::Root(root.id()));
        found.sort_by_key(|referrer| match referrer {
            Referrer::Root(_) => 0,
            Referrer::Object(object) => object.block.base().addr().get(),
        });
        let [end, twice] = [Referrer::Object(end), Referrer::Object(twice)];
        assert_eq!(found[1..], [end, twice, twice], "itself, and the other by two references");
    });
}

#[test]
fn a_path_leads_from_a_root_to_an_object() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let end = make(&mut point, 0, &[]).unwrap();
        let mut list = end;
        for name in 1..10 {
            // Each refers to an object of its own besides.
            let other = make(&mut point, 100 + name, &[]).unwrap();
            list = make(&mut point, name, &[other, list]).unwrap();
        }
        slots.set(0, list);
        let garbage = make(&mut point, 200, &[end]).unwrap();
        point.empty();
        let mut stopped = mutator.stop(ALL).unwrap();
        let mut table = [PathStep::default(); 19];
        let path = stopped.path_to(end, &mut table).unwrap();
        assert_eq!((path.root, path.steps.len()), (root.id(), 10));
        assert_eq!(path.steps[9].object_base(), end.cast_const());
        assert_eq!(stopped.path_to(garbage, &mut table), Err(NoPath::Unreachable));
        assert_eq!(stopped.path_to(end, &mut table[..18]), Err(NoPath::Full));
        assert_eq!(stopped.path_to(end, &mut []), Err(NoPath::Full));
        let base = heap.arena().range().base().get();
        let behind = garbage.with_addr(base);
        for nowhere in [ptr::null(), (&raw const slots).cast(), behind.cast_const()] {
            assert_eq!(stopped.path_to(nowhere, &mut table), Err(NoPath::NoObject));
            assert_eq!(stopped.object_at(nowhere), None);
        }
        // Searches leave no marks: a collection is as it would be without them.
        let found = stopped.collect();
        assert_eq!((found.kept, found.freed), ((2 + 9 * 6) * WORD, 3 * WORD));
        assert_eq!(stopped.object_at(garbage), None);
    });
}

/// What only finalization keeps is distinguished from what is freed: as long as it is registered, and while it waits to be taken.
#[test]
fn what_finalization_keeps_is_no_path_and_not_unreachable() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let behind = make(&mut point, 1, &[]).unwrap();
        let registered = make(&mut point, 2, &[behind]).unwrap();
        let garbage = make(&mut point, 3, &[behind]).unwrap();
        let object = NonNull::new(registered).unwrap();
        mutator.finalize(object).unwrap();
        // A registration of a place without an object leads nowhere.
        mutator.finalize(NonNull::new(garbage.wrapping_add(WORD)).unwrap()).unwrap();
        point.empty();
        let mut table = [PathStep::default(); 3];
        for is_collected in [false, true] {
            let mut stopped = mutator.stop(ALL).unwrap();
            if is_collected {
                assert_eq!(stopped.collect().freed, 3 * WORD);
            } else {
                assert_eq!(stopped.path_to(garbage, &mut table), Err(NoPath::Unreachable));
            }
            for kept in [registered, behind] {
                assert_eq!(stopped.path_to(kept, &mut table), Err(NoPath::Finalizable));
            }
            assert_eq!(stopped.path_to(behind, &mut table[..1]), Err(NoPath::Full));
        }
        assert_eq!(mutator.next_message(), Some(Message::Finalizable(object)));
        let mut stopped = mutator.stop(ALL).unwrap();
        assert_eq!(stopped.path_to(behind, &mut table), Err(NoPath::Unreachable));
        assert_eq!(stopped.collect().freed, 5 * WORD);
    });
}

/// What only a weak reference leads to is kept by nothing.
#[test]
fn weak_references_are_no_path() {
    with_heap(64 << 10, |heap| {
        let (weak, nodes) = (pool::<WeakSlots>(heap, 0), pool::<Traced>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut weak_point, mut node_point) = (point(&weak, &mutator), point(&nodes, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let node = make(&mut node_point, 1, &[]).unwrap();
        let table = make(&mut weak_point, 2, &[node]).unwrap();
        slots.set(0, table);
        node_point.empty();
        weak_point.empty();
        let mut stopped = mutator.stop(ALL).unwrap();
        let mut steps = [PathStep::default(); 2];
        assert_eq!(stopped.path_to(table, &mut steps).map(|path| path.steps.len()), Ok(1));
        assert_eq!(stopped.path_to(node, &mut steps), Err(NoPath::Unreachable));
        stopped.walk_referrers(stopped.object_at(node).unwrap(), |referrer| panic!("{referrer:?}"));
        assert_eq!(stopped.collect().freed, 2 * WORD);
    });
}

/// Objects in front of what is reserved are shown, and the reservation is not committed.
#[test]
fn a_walk_is_as_a_collection_for_a_reservation_that_is_held() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let first = make(&mut point, 1, &[]).unwrap();
        let reservation = point.reserve(layout(0, 0)).unwrap();
        // SAFETY: that many bytes were reserved.
        unsafe { write(reservation.as_ptr().cast(), reservation.size(), 2, &[]) };
        let mut shown = Vec::new();
        mutator.stop(ALL).unwrap().walk_objects(|object| shown.push(Addr::of(object.reference.as_ptr())));
        assert_eq!(shown, [Addr::of(first)]);
        // SAFETY: a whole node.
        assert!(unsafe { reservation.commit() }.is_err(), "it may have references that were not seen");
    });
}
