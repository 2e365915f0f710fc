//! Transforms: objects that take the place of others (design/gc-transforms.md `.req.all`, `.req.none`, `.req.memory`).
//! Graphs with transforms are in `shadow.rs`, and generations in `generations.rs`.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;

use crate::common::{
    Slots, TestHeap, TestMutator, WORD, layout, make, name, point, pool, reference, set_reference, with_heap,
    write,
};
use tripoint_core::{Addr, Block, Error};
use tripoint_gc::{
    Ams, Awl, Format, Leaf, Message, Moved, MovedLeaf, NotApplied, Referrer, Root, Scan, Step, Swept,
    SweptOptions, Tag, Traced, Transform, WeakSlots,
};

const ALL: Duration = Duration::MAX;

/// A transform with these pairs.
fn transform<'m>(
    heap: &'m TestHeap<'m>,
    pairs: &[(*mut u8, *mut u8)],
) -> Transform<'m, crate::common::Arena<'m>> {
    let mut transform = Transform::create(heap, pairs.len()).unwrap();
    for &(old, new) in pairs {
        add(&mut transform, old, new);
    }
    transform
}

fn add(transform: &mut Transform<'_, crate::common::Arena<'_>>, old: *mut u8, new: *mut u8) {
    let [old, new] = [old, new].map(|node| NonNull::new(node).unwrap());
    // SAFETY: these are references that the test has just read, or are refused before a collection finds them. All
    // references to nodes are passed in their places, and any node may be in the place of another.
    unsafe { transform.add_oldnew(old, new) }.unwrap();
}

fn apply<'m>(
    mutator: &mut TestMutator<'m>,
    transform: &mut Transform<'m, crate::common::Arena<'m>>,
) -> Result<usize, NotApplied> {
    let mut stopped = mutator.stop(ALL).unwrap();
    transform.apply(&mut stopped)
}

/// Slots that are a root of exact references.
fn table<'m, const COUNT: usize>(
    heap: &'m TestHeap<'m>,
    slots: &Slots<COUNT>,
) -> Root<'m, crate::common::Arena<'m>, tripoint_core::SymmetricFence> {
    // SAFETY: each test keeps its slots longer than the root, and only its thread uses them.
    unsafe { heap.root_table(slots.base(), COUNT, Tag::default()) }.unwrap()
}

#[test]
fn all_exact_references_are_replaced() {
    with_heap(256 << 10, |heap| {
        let (nodes, headed) = (pool::<Moved>(heap, 0), pool::<Traced>(heap, 2));
        let (leaves, moved_leaves) = (pool::<Leaf>(heap, 0), pool::<MovedLeaf>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let mut points = (point(&nodes, &mutator), point(&headed, &mutator));
        let mut leaf_points = (point(&leaves, &mutator), point(&moved_leaves, &mutator));
        let (slots, tagged, weak) = (Slots::<3>::default(), Slots::<2>::default(), Slots::<2>::default());
        let _slots = table(heap, &slots);
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _tagged = unsafe { heap.root_table(tagged.base(), 2, Tag { mask: 3, pattern: 1 }) }.unwrap();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _weak = unsafe { heap.root_weak(weak.base(), 2, Tag::default()) }.unwrap();

        let leaf = make(&mut leaf_points.0, 1, &[]).unwrap();
        let old = make(&mut points.1, 2, &[leaf]).unwrap();
        // Its second word looks like a reference, and is none.
        let other = make(&mut leaf_points.1, 3, &[old]).unwrap();
        let new = make(&mut points.0, 4, &[old, other]).unwrap();
        let user = make(&mut points.1, 5, &[old, new, old, other]).unwrap();
        slots.set(0, user);
        slots.set(1, old);
        tagged.set(0, old.map_addr(|addr| addr | 1));
        // This has another tag, so it is a number.
        tagged.set(1, old.map_addr(|addr| addr | 2));
        weak.set(0, old);
        weak.set(1, user);

        let mut change = transform(heap, &[(old, new)]);
        // Two of the user, one of the new node itself, and those in three roots.
        assert_eq!(apply(&mut mutator, &mut change), Ok(6));
        assert_eq!([slots.get(0), slots.get(1)], [user, new]);
        assert_eq!(tagged.get(0), new.map_addr(|addr| addr | 1), "the tag stays");
        assert_eq!(tagged.get(1), old.map_addr(|addr| addr | 2), "a number stays");
        assert_eq!([weak.get(0), weak.get(1)], [new, user]);
        // SAFETY: the slots keep the nodes, and nothing was collected.
        unsafe {
            assert_eq!([0, 1, 2, 3].map(|index| reference(user, index)), [new, new, new, other]);
            assert_eq!([reference(new, 0), reference(new, 1)], [new, other]);
            assert_eq!((name(old), reference(old, 0)), (2, leaf), "the old node is as it was");
            assert_eq!(reference(other, 0), old, "the words of leaves are no references");
        }
        assert_eq!(apply(&mut mutator, &mut change), Ok(0), "the pairs are forgotten");
        drop(change);

        points.0.empty();
        points.1.empty();
        leaf_points.0.empty();
        leaf_points.1.empty();
        let kept = mutator.collect(ALL).unwrap().kept;
        assert_eq!(kept, (4 + 8 + 3) * WORD, "the old node and what it alone had are freed");
    });
}

/// Before a transform is applied its nodes are kept, and it follows those that move.
#[test]
fn pairs_are_a_root() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        let _root = table(heap, &slots);
        let old = make(&mut point, 1, &[]).unwrap();
        slots.set(0, make(&mut point, 2, &[old]).unwrap());
        let new = make(&mut point, 3, &[]).unwrap();
        let mut change = transform(heap, &[(old, new)]);
        point.empty();
        for _ in 0..3 {
            assert_eq!(mutator.collect(ALL).map(|found| (found.kept, found.freed)), Ok((7 * WORD, 0)));
        }
        let mut stopped = mutator.stop(ALL).unwrap();
        let mut pairs = Vec::new();
        stopped.walk_roots(|shown| {
            if shown.root == change.id() {
                pairs.push(shown.addr);
            }
        });
        assert_eq!(pairs.len(), 2);
        assert!(pairs[0] != Addr::of(old) && pairs[1] != Addr::of(new), "they moved");
        assert_eq!(change.apply(&mut stopped), Ok(1));
        drop(stopped);
        // SAFETY: the slot keeps both nodes.
        let found = unsafe { reference(slots.get(0), 0) };
        // SAFETY: the slot keeps both nodes.
        assert_eq!((Addr::of(found), unsafe { name(found) }), (pairs[1], 3));
        assert_eq!(mutator.collect(ALL).map(|found| (found.kept, found.freed)), Ok((5 * WORD, 2 * WORD)));
    });
}

#[test]
fn an_ambiguous_reference_refuses_all() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Moved>(heap, 1);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let (slots, word) = (Slots::<4>::default(), Cell::new(0_usize));
        let _slots = table(heap, &slots);
        // SAFETY: the word outlives the root, and only this thread uses it.
        let root = unsafe { heap.root_ambiguous(NonNull::from(&word).cast(), 1) }.unwrap();
        let nodes = [0, 1, 2, 3].map(|name| make(&mut point, name, &[ptr::null_mut()]).unwrap());
        (0..4).for_each(|slot| slots.set(slot, nodes[slot]));
        let mut change = transform(heap, &[(nodes[0], nodes[1]), (nodes[2], nodes[3])]);
        // A byte of the header, one in the middle, and the last one.
        for within in [nodes[2].addr() - WORD, nodes[2].addr() + WORD + 1, nodes[2].addr() + 3 * WORD - 1] {
            word.set(within);
            let refused =
                NotApplied::Ambiguous { old: Addr::of(nodes[2]), referrer: Referrer::Root(root.id()) };
            assert_eq!(apply(&mut mutator, &mut change), Err(refused));
            assert!((0..4).all(|slot| slots.get(slot) == nodes[slot]), "nothing was changed");
        }
        word.set(nodes[1].addr());
        assert_eq!(apply(&mut mutator, &mut change), Ok(2), "only old nodes count");
        assert_eq!([0, 1, 2, 3].map(|slot| slots.get(slot)), [1, 1, 3, 3].map(|node: usize| nodes[node]));
    });
}

/// Nodes whose first reference is fixed as an ambiguous one: nothing that they lead to moves.
struct Conservative;

// SAFETY: these are nodes, and all of their references are passed on.
unsafe impl Format for Conservative {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises a node, which begins with its size.
        unsafe { object.cast::<usize>().read() }
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole nodes in a row.
            let node = unsafe { objects.base().add(at) }.as_ptr();
            // SAFETY: each node of this test has a reference.
            scan.fix_ambiguous(unsafe { reference(node, 0) }.addr());
            // SAFETY: the caller promises nodes.
            at += unsafe { self.skip(objects.base().add(at)) };
        }
    }
}

#[test]
fn an_ambiguous_reference_of_an_object_refuses_all() {
    with_heap(256 << 10, |heap| {
        let nodes = pool::<Traced>(heap, 0);
        let words: Ams<'_, _, _, Conservative> =
            Swept::create(heap, Conservative, SweptOptions::default()).unwrap();
        let mut mutator = heap.register().unwrap();
        let mut point_to_nodes = point(&nodes, &mutator);
        let slots = Slots::<2>::default();
        let _slots = table(heap, &slots);
        let [old, new] = [1, 2].map(|name| make(&mut point_to_nodes, name, &[]).unwrap());
        slots.set(0, old);
        let mut point = tripoint_ap::AllocationPoint::create_in(
            &words,
            tripoint_core::BufferKind::Mutator,
            (),
            // SAFETY: this thread has the mutator, and uses the point only while it runs.
            |buffer: &tripoint_gc::MutatorBuffer| unsafe { buffer.attend(&mutator) },
        )
        .unwrap();
        let reservation = point.reserve(layout(0, 1)).unwrap();
        // SAFETY: that many bytes were reserved.
        unsafe { write(reservation.as_ptr().cast(), reservation.size(), 3, &[old]) };
        // SAFETY: the node was just written.
        let user = unsafe { reservation.commit() }.unwrap().as_ptr();
        slots.set(1, user);
        let mut change = transform(heap, &[(old, new)]);
        let refused = apply(&mut mutator, &mut change);
        let Err(NotApplied::Ambiguous { old: nailed, referrer: Referrer::Object(by) }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((nailed, by.reference.as_ptr(), slots.get(0)), (Addr::of(old), user, old));
        // Also of an object that is dead, until it is freed.
        slots.set(1, ptr::null_mut());
        let refused = apply(&mut mutator, &mut change);
        assert!(matches!(refused, Err(NotApplied::Ambiguous { .. })), "{refused:?}");
        let mut stopped = mutator.stop(ALL).unwrap();
        stopped.collect();
        assert_eq!(change.apply(&mut stopped), Ok(1));
        assert_eq!(slots.get(0), new);
    });
}

#[test]
fn pairs_that_have_no_meaning_are_refused() {
    with_heap(256 << 10, |heap| {
        let (nodes, headed) = (pool::<Moved>(heap, 0), pool::<Traced>(heap, 2));
        let mut mutator = heap.register().unwrap();
        let (mut point_to_nodes, mut point_to_headed) = (point(&nodes, &mutator), point(&headed, &mutator));
        let slots = Slots::<4>::default();
        let _slots = table(heap, &slots);
        let [a, b, c] = [1, 2, 3].map(|name| make(&mut point_to_nodes, name, &[ptr::null_mut()]).unwrap());
        let d = make(&mut point_to_headed, 4, &[]).unwrap();
        [a, b, c, d].into_iter().enumerate().for_each(|(slot, node)| slots.set(slot, node));
        let outside = 0_usize;
        let outside = (&raw const outside).cast_mut().cast::<u8>();
        let (within, base_of_headed) = (b.wrapping_add(WORD), d.wrapping_sub(2 * WORD));
        let free = d.wrapping_add(16 * WORD);
        let cases: [(&[_], _); 9] = [
            (&[(a, b), (b, c)], NotApplied::Chain(Addr::of(b))),
            (&[(a, b), (b, a)], NotApplied::Chain(Addr::of(b))),
            (&[(a, a)], NotApplied::Chain(Addr::of(a))),
            (&[(a, b), (d, c), (a, c)], NotApplied::Twice(Addr::of(a))),
            (&[(d, c), (a, b), (a, b)], NotApplied::Twice(Addr::of(a))),
            (&[(outside, b)], NotApplied::NoObject(Addr::of(outside))),
            (&[(within, a)], NotApplied::NoObject(Addr::of(within))),
            (&[(a, base_of_headed)], NotApplied::NoObject(Addr::of(base_of_headed))),
            (&[(a, b), (c, free)], NotApplied::NoObject(Addr::of(free))),
        ];
        for (pairs, expected) in cases {
            let refused = apply(&mut mutator, &mut transform(heap, pairs));
            assert_eq!(refused, Err(expected), "{pairs:?}");
            assert_eq!([0, 1, 2, 3].map(|slot| slots.get(slot)), [a, b, c, d], "nothing was changed");
        }
        // Two become one, and one becomes what is outside the heap.
        let mut change = transform(heap, &[(a, c), (b, c), (d, outside)]);
        assert_eq!(apply(&mut mutator, &mut change), Ok(3));
        assert_eq!([0, 1, 2, 3].map(|slot| slots.get(slot)), [c, c, c, outside]);
    });
}

#[test]
fn a_transform_of_another_heap_is_refused() {
    with_heap(64 << 10, |heap| {
        with_heap(64 << 10, |other| {
            let mut change = transform(heap, &[]);
            let refused = other.stop(ALL).map(|mut stopped| change.apply(&mut stopped));
            assert_eq!(refused, Ok(Err(NotApplied::OtherHeap)));
            assert_eq!(heap.stop(ALL).map(|mut stopped| change.apply(&mut stopped)), Ok(Ok(0)));
        });
    });
}

#[test]
fn memory_is_taken_when_a_transform_is_created() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let [old, new] = [1, 2].map(|name| make(&mut point, name, &[]).unwrap());
        // The most for which there is memory now.
        let most = || (0..4096).rev().find(|room| Transform::create(heap, *room).is_ok());
        let before = most();
        assert!(before.is_some_and(|most| most > 1000), "{before:?}");
        for room in [usize::MAX, usize::MAX / WORD / 2, 1 << 20, 5000] {
            assert_eq!(Transform::create(heap, room).err(), Some(Error::Limit), "room for {room}");
        }
        assert_eq!(most(), before, "what was refused has taken nothing");
        let mut change = Transform::create(heap, 1).unwrap();
        add(&mut change, old, new);
        let [old, new] = [old, new].map(|node| NonNull::new(node).unwrap());
        // SAFETY: both nodes are there, and this is refused.
        let refused = unsafe { change.add_oldnew(new, old) };
        assert!(matches!(refused, Err(Error::Parameter(_))), "{refused:?}");
        assert_eq!(apply(&mut mutator, &mut change), Ok(0));
        drop(change);
        assert_eq!(most(), before, "all is returned");
    });
}

/// The model is a map.
#[test]
fn many_pairs_are_found() {
    const NODES: usize = if cfg!(miri) { 200 } else { 5000 };
    with_heap(2 << 20, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        let _slots = table(heap, &slots);
        let make_all = |first: usize, point: &mut _| -> Vec<_> {
            (0..NODES).map(|index| make(point, first + index, &[]).unwrap()).collect()
        };
        let (olds, news) = (make_all(0, &mut point), make_all(NODES, &mut point));
        let user = make(&mut point, 2 * NODES, &olds).unwrap();
        slots.set(0, user);
        let mut change = Transform::create(heap, NODES).unwrap();
        // Two of three become others, in an order that is not that of their addresses.
        let mut expected: BTreeMap<_, _> = olds.iter().map(|&old| (old, old)).collect();
        for index in (0..NODES).map(|index| index * 7919 % NODES).filter(|index| index % 3 != 0) {
            add(&mut change, olds[index], news[NODES - 1 - index]);
            expected.insert(olds[index], news[NODES - 1 - index]);
        }
        assert_eq!(apply(&mut mutator, &mut change), Ok((0..NODES).filter(|index| index % 3 != 0).count()));
        for (index, old) in olds.iter().enumerate() {
            // SAFETY: the slot keeps the user, which has as many references.
            assert_eq!(unsafe { reference(user, index) }, expected[old]);
        }
    });
}

/// Registrations and what waits in the queue are of the new node.
#[test]
fn registrations_for_finalization_are_of_the_new_object() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<3>::default();
        let _slots = table(heap, &slots);
        let [waiting, old, first, second] = [1, 2, 3, 4].map(|name| make(&mut point, name, &[]).unwrap());
        point.empty();
        [waiting, old].iter().for_each(|node| mutator.finalize(NonNull::new(*node).unwrap()).unwrap());
        [old, first, second].into_iter().enumerate().for_each(|(slot, node)| slots.set(slot, node));
        mutator.collect(ALL).unwrap();
        // The first node waits now, and only the queue has it.
        let mut change = Transform::create(heap, 2).unwrap();
        let mut stopped = mutator.stop(ALL).unwrap();
        let mut waiting = ptr::null_mut();
        stopped.walk_objects(|object| {
            // SAFETY: all objects are nodes.
            if unsafe { name(object.reference.as_ptr()) } == 1 {
                waiting = object.reference.as_ptr();
            }
        });
        add(&mut change, waiting, slots.get(1));
        add(&mut change, slots.get(0), slots.get(2));
        assert_eq!(change.apply(&mut stopped), Ok(3), "two of registrations, and a slot");
        drop(stopped);
        let Some(Message::Finalizable(taken)) = mutator.next_message() else { panic!("it waits") };
        assert_eq!((taken.as_ptr(), mutator.next_message()), (slots.get(1), None));
        (0..3).for_each(|slot| slots.set(slot, ptr::null_mut()));
        mutator.collect(ALL).unwrap();
        let Some(Message::Finalizable(taken)) = mutator.next_message() else { panic!("it is dead") };
        // SAFETY: it was kept to be finalized.
        assert_eq!((unsafe { name(taken.as_ptr()) }, mutator.next_message()), (4, None));
        assert_eq!(mutator.collect(ALL).map(|found| found.kept), Ok(0));
    });
}

#[test]
fn dependencies_on_old_objects_are_stale() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let [old, new] = [1, 2].map(|name| make(&mut point, name, &[]).unwrap());
        let mut on_old = mutator.reset_dependency();
        on_old.add(old);
        let on_nothing = mutator.reset_dependency();
        let mut change = transform(heap, &[(old, new)]);
        assert!(!mutator.is_stale(on_old));
        assert_eq!(apply(&mut mutator, &mut change), Ok(0));
        assert!(mutator.is_stale(on_old) && !mutator.is_stale(on_nothing));
        let mut later = mutator.reset_dependency();
        later.add(new);
        assert_eq!(apply(&mut mutator, &mut change), Ok(0));
        assert!(!mutator.is_stale(later), "nothing was replaced");
    });
}

/// Half of the heap was marked, and what is new is white.
#[test]
fn a_collection_in_steps_ends() {
    const NODES: usize = if cfg!(miri) { 400 } else { 4000 };

    with_heap(512 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        let _slots = table(heap, &slots);
        for name in 0..NODES {
            slots.set(0, make(&mut point, name, &[slots.get(0)]).unwrap());
        }
        // SAFETY: each node but the first has a reference to the one before.
        let middle = (0..NODES / 2).fold(slots.get(0), |node, _| unsafe { reference(node, 0) });
        // Under Miri there is too little to be swept for a step of its own.
        for is_swept in [false, true].into_iter().take(if cfg!(miri) { 1 } else { 2 }) {
            let mut step = mutator.step(ALL, || false).unwrap();
            while is_swept && matches!(step, Step::Marking { .. }) {
                step = mutator.step(ALL, || false).unwrap();
            }
            assert_eq!(matches!(step, Step::Sweeping { .. }), is_swept, "{step:?}");
            // SAFETY: the node is in the list, and has a reference.
            let old = unsafe { reference(middle, 0) };
            // SAFETY: the node is in the list, and has a reference.
            let behind = unsafe { reference(old, 0) };
            let new = make(&mut point, 7777, &[behind]).unwrap();
            assert_eq!(apply(&mut mutator, &mut transform(heap, &[(old, new)])), Ok(1));
            point.empty();
            let found = mutator.collect(ALL).unwrap();
            assert_eq!(found.kept, NODES * 3 * WORD);
            // SAFETY: the list keeps the node.
            assert_eq!(unsafe { (reference(middle, 0), name(reference(middle, 0))) }, (new, 7777));
        }
    });
}

#[test]
fn a_reservation_that_is_held_is_not_committed() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let (mut first, mut second) = (point(&pool, &mutator), point(&pool, &mutator));
        let [old, new] = [1, 2].map(|name| make(&mut first, name, &[]).unwrap());
        let reservation = second.reserve(layout(0, 1)).unwrap();
        // SAFETY: that many bytes were reserved.
        unsafe { write(reservation.as_ptr().cast(), reservation.size(), 3, &[old]) };
        assert_eq!(apply(&mut mutator, &mut transform(heap, &[(old, new)])), Ok(0));
        // SAFETY: a whole node.
        assert!(unsafe { reservation.commit() }.is_err(), "the transform did not see its reference");
    });
}

/// A transform's pairs are references like others.
#[test]
fn a_transform_replaces_the_objects_of_another() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        let _slots = table(heap, &slots);
        let [a, b, c] = [1, 2, 3].map(|name| make(&mut point, name, &[]).unwrap());
        slots.set(0, a);
        let (mut first, mut second) = (transform(heap, &[(a, b)]), transform(heap, &[(b, c), (a, c)]));
        assert_eq!(apply(&mut mutator, &mut first), Ok(2), "the slot, and an old node of the other");
        assert_eq!(apply(&mut mutator, &mut second), Err(NotApplied::Twice(Addr::of(b))));
        let mut third = transform(heap, &[(b, c)]);
        assert_eq!(apply(&mut mutator, &mut third), Ok(3));
        assert_eq!(slots.get(0), c);
    });
}

#[test]
fn pairs_of_a_pool_that_is_dropped_are_forgotten() {
    with_heap(64 << 10, |heap| {
        let kept = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point_to_kept = point(&kept, &mutator);
        let slots = Slots::<2>::default();
        let _slots = table(heap, &slots);
        let [a, b] = [1, 2].map(|name| make(&mut point_to_kept, name, &[]).unwrap());
        slots.set(0, a);
        let mut change = Transform::create(heap, 3).unwrap();
        let dropped = pool::<Moved>(heap, 0);
        let [c, d] = [3, 4].map(|name| make(&mut point(&dropped, &mutator), name, &[]).unwrap());
        [(c, a), (a, b), (b, d)].into_iter().for_each(|(old, new)| add(&mut change, old, new));
        drop(dropped);
        mutator.collect(ALL).unwrap();
        assert_eq!(apply(&mut mutator, &mut change), Ok(1));
        assert_eq!(slots.get(0), b);
    });
}

/// Keys whose values depend on them.
struct Keys;

// SAFETY: these are nodes, and all of their references are passed on.
unsafe impl Format for Keys {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises a node, which begins with its size.
        unsafe { object.cast::<usize>().read() }
    }

    unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
        // SAFETY: the first reference of keys is that to their values.
        unsafe { reference(object.as_ptr(), 0) }
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole nodes in a row.
            let node = unsafe { objects.base().add(at) };
            // SAFETY: the caller promises nodes.
            let size = unsafe { self.skip(node) };
            for word in 2..size / WORD {
                // SAFETY: the word is in the node, and no thread uses it meanwhile.
                scan.fix(unsafe { node.cast::<*mut u8>().add(word).as_mut() });
            }
            at += size;
        }
    }
}

#[test]
fn keys_of_weak_tables_are_replaced_and_dependent_objects_are_not() {
    with_heap(256 << 10, |heap| {
        let nodes = pool::<Traced>(heap, 0);
        let tables: Awl<'_, _, _, Keys> =
            Swept::<_, _, _, WeakSlots>::create(heap, Keys, SweptOptions::default()).unwrap();
        let mut mutator = heap.register().unwrap();
        let mut point_to_nodes = point(&nodes, &mutator);
        let slots = Slots::<1>::default();
        let _slots = table(heap, &slots);
        let [values, key, new] = [1, 2, 3].map(|name| make(&mut point_to_nodes, name, &[]).unwrap());
        let mut point = tripoint_ap::AllocationPoint::create_in(
            &tables,
            tripoint_core::BufferKind::Mutator,
            (),
            // SAFETY: this thread has the mutator, and uses the point only while it runs.
            |buffer: &tripoint_gc::MutatorBuffer| unsafe { buffer.attend(&mutator) },
        )
        .unwrap();
        let reservation = point.reserve(layout(0, 2)).unwrap();
        // SAFETY: that many bytes were reserved.
        unsafe { write(reservation.as_ptr().cast(), reservation.size(), 4, &[values, key]) };
        // SAFETY: the node was just written.
        let keys = unsafe { reservation.commit() }.unwrap().as_ptr();
        slots.set(0, keys);
        let mut change = transform(heap, &[(values, new)]);
        let refused = apply(&mut mutator, &mut change);
        let Err(NotApplied::Dependent { old, of }) = refused else { panic!("{refused:?}") };
        assert_eq!((old, of.reference.as_ptr()), (Addr::of(values), keys));
        assert_eq!(apply(&mut mutator, &mut transform(heap, &[(key, new)])), Ok(1));
        // SAFETY: the slot keeps the table.
        assert_eq!(unsafe { (reference(keys, 0), reference(keys, 1)) }, (values, new));
        // SAFETY: the slot keeps the table, which has this reference.
        unsafe { set_reference(keys, 0, ptr::null_mut()) };
        assert_eq!(apply(&mut mutator, &mut change), Ok(0));
    });
}

/// The twin: what a root function does not pass on stays as it was, and is found to be.
#[test]
fn a_root_that_hides_a_reference_keeps_the_old_object() {
    static HIDES: AtomicBool = AtomicBool::new(false);

    /// # Safety
    /// - `data` leads to a slot.
    unsafe fn scan(data: *mut (), scan: &mut Scan<'_>) {
        if !HIDES.load(Ordering::Relaxed) {
            // SAFETY: the caller promises a slot.
            scan.fix(unsafe { &mut *data.cast::<*mut u8>() });
        }
    }

    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let [old, new] = [1, 2].map(|name| make(&mut point, name, &[]).unwrap());
        for hides in [true, false] {
            let slots = Slots::<1>::default();
            slots.set(0, old);
            // SAFETY: the slot outlives the root, and only this thread uses it.
            let _root = unsafe { heap.root_function(scan, slots.base().as_ptr().cast()) }.unwrap();
            HIDES.store(hides, Ordering::Relaxed);
            let replaced = apply(&mut mutator, &mut transform(heap, &[(old, new)]));
            assert_eq!((replaced, slots.get(0) == old), (Ok(usize::from(!hides)), hides));
        }
    });
}
