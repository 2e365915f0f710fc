//! What collections of young generations look at, by counts, and what becomes of the memory of the young
//! (design/gc-generations.md `.req.time`, `.card.look`, `.nursery`).

use core::ptr;
use core::time::Duration;

use crate::common::{
    Nodes, Point, Slots, TestMutator, TestPool, WORD, layout, make, make_with, name, noting_pool, point,
    pool, reference, set_reference, with_heap,
};
use tripoint_core::{Check, CheckLevel, PoolClass};
use tripoint_gc::{GENERATIONS, Kind, Moved, Policy, Tag, Traced, Writes};

const ALL: Duration = Duration::MAX;

/// Calls `test` with a heap in which that many nodes of three words are in the last generation, and a slot leads to the
/// newest, in a pool whose writes are noted or not.
fn with_old<K: Kind<Nodes>>(
    count: usize,
    notes: bool,
    test: impl for<'m> FnOnce(&TestPool<'m, K>, &mut Point<'_, 'm, K>, &mut TestMutator<'m>, &Slots<2>),
) {
    with_heap(1 << 20, |heap| {
        let pool = if notes { noting_pool::<K>(heap) } else { pool::<K>(heap, 0) };
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        for index in 0..count {
            slots.set(0, make(&mut point, index, &[slots.get(0)]).unwrap());
        }
        point.empty();
        for _ in 0..GENERATIONS {
            mutator.collect(ALL).unwrap();
        }
        test(&pool, &mut point, &mut mutator, &slots);
    });
}

/// By counts: what a collection of the youngest generation examines and looks at is the same whatever is older, unless
/// nothing says what was written.
#[test]
fn a_minor_collection_does_not_depend_on_what_is_old() {
    const FEW: usize = if cfg!(miri) { 30 } else { 2000 };
    const MANY: usize = 4 * FEW;
    const YOUNG: usize = if cfg!(miri) { 5 } else { 50 };
    // The cards that that many nodes fill.
    const fn filled(nodes: usize) -> usize {
        nodes * 3 * WORD / 512
    }
    let minor = |count: usize, notes: bool| {
        let mut report = None;
        with_old::<Moved>(count, notes, |pool, point, mutator, slots| {
            for index in 0..YOUNG {
                let node = make(point, index, &[slots.get(1)]).unwrap();
                slots.set(1, node);
            }
            let old = slots.get(0);
            // SAFETY: the slot leads to the node, which has a reference.
            unsafe { set_reference(old, 0, slots.get(1)) };
            pool.note_write(mutator, old.wrapping_add(2 * WORD));
            point.empty();
            let found = mutator.collect_up_to(0, ALL).unwrap();
            assert_eq!((found.generations, found.moved, found.freed), (1, YOUNG * 3 * WORD, 0));
            assert_eq!(found.kept, (count + YOUNG) * 3 * WORD);
            report = Some((found.writes, found.cards, found.examined, found.references));
        });
        report.unwrap()
    };
    let (writes, cards, examined, references) = minor(FEW, true);
    assert_eq!((writes, cards), (Writes::Noted, 1));
    // What is on the card: nodes of three words, one of which may begin in front of it.
    assert!(examined <= YOUNG * 3 * WORD + 512 + 3 * WORD, "{examined} bytes");
    // The last collection compacted the list from its newest node on, so both lists have the same first card.
    assert_eq!(minor(MANY, true), (writes, cards, examined, references));
    let [few, many] = [FEW, MANY].map(|count| minor(count, false));
    assert_eq!([few.0, many.0], [Writes::Unknown; 2]);
    assert!(few.1 >= filled(FEW) && many.1 >= filled(MANY), "{few:?}, {many:?}");
    assert!(few.2 > FEW * 3 * WORD && many.2 > MANY * 3 * WORD, "{few:?}, {many:?}");
}

/// A card is looked at if it was written, or while its objects refer to what is condemned, and not again.
#[test]
fn cards_are_looked_at_when_they_have_to_be() {
    with_old::<Moved>(if cfg!(miri) { 30 } else { 500 }, true, |pool, point, mutator, slots| {
        let mut minor = |oldest: usize| mutator.collect_up_to(oldest, ALL).unwrap().cards;
        assert_eq!([minor(0), minor(1)], [0, 0], "nothing was written, and nothing is young");
        slots.set(1, make(point, 0, &[]).unwrap());
        let old = slots.get(0);
        // SAFETY: the slot leads to the node, which has a reference.
        unsafe { set_reference(old, 0, slots.get(1)) };
        pool.note_write(mutator, old.wrapping_add(2 * WORD));
        slots.set(1, ptr::null_mut());
        point.empty();
        let mut minor = |oldest: usize| mutator.collect_up_to(oldest, ALL).unwrap().cards;
        assert_eq!(minor(0), 1, "it was written");
        assert_eq!([minor(0), minor(0)], [0, 0], "it refers to the second generation");
        assert_eq!(minor(1), 1);
        assert_eq!([minor(0), minor(1)], [0, 0], "it refers to the last");
        // A write of what is old leaves nothing to be looked at later.
        pool.note_write(mutator, old);
        let mut minor = |oldest: usize| mutator.collect_up_to(oldest, ALL).unwrap().cards;
        assert_eq!([minor(0), minor(1)], [1, 0]);
    });
}

/// Objects of classes that do not move are in the last generation from the beginning: a new one counts as written.
#[test]
fn new_nodes_that_do_not_move_count_as_written() {
    with_heap(64 << 10, |heap| {
        let (fixed, moving) = (noting_pool::<Traced>(heap), noting_pool::<Moved>(heap));
        let mut mutator = heap.register().unwrap();
        let mut points = (point(&fixed, &mutator), point(&moving, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let young = make(&mut points.1, 7, &[]).unwrap();
        slots.set(0, make(&mut points.0, 1, &[young]).unwrap());
        let dead = make(&mut points.0, 2, &[young]).unwrap();
        points.0.empty();
        points.1.empty();
        let found = mutator.collect_up_to(0, ALL).unwrap();
        assert_eq!((found.cards, found.kept, found.freed), (1, 8 * WORD, 0), "the dead one is old, and kept");
        for node in [slots.get(0), dead] {
            // SAFETY: both nodes are there, and so is what they refer to.
            assert_eq!(unsafe { name(reference(node, 0)) }, 7);
        }
        assert_eq!(mutator.collect_up_to(0, ALL).unwrap().cards, 0);
        assert_eq!(mutator.collect(ALL).unwrap().freed, 3 * WORD);
    });
}

/// A node with a segment of its own does not move: its segment ages, and what it refers to is found by its card.
#[test]
fn large_nodes_age_where_they_are() {
    const LARGE: usize = if cfg!(miri) { 600 } else { 2000 };
    with_heap(256 << 10, |heap| {
        let pool = noting_pool::<Moved>(heap);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        let large = make(&mut point, 1, &[ptr::null_mut(); LARGE]).unwrap();
        slots.set(0, large);
        point.empty();
        let mut generations = Vec::new();
        for _ in 0..GENERATIONS {
            let young = make(&mut point, 2, &[]).unwrap();
            // SAFETY: the slot leads to the node, which has that many references.
            unsafe { set_reference(large, LARGE - 1, young) };
            pool.note_write(&mut mutator, large.wrapping_add((1 + LARGE) * WORD));
            point.empty();
            let found = mutator.collect_up_to(0, ALL).unwrap();
            // SAFETY: the large node leads there.
            assert_eq!(unsafe { name(reference(large, LARGE - 1)) }, 2);
            generations.push((found.cards, found.freed > 0));
        }
        assert_eq!(generations, [(0, false), (1, false), (1, false)], "it is old after the first");
        slots.set(0, ptr::null_mut());
        assert_eq!(mutator.collect_up_to(0, ALL).unwrap().freed, 0);
        let found = mutator.collect_up_to(1, ALL).unwrap();
        assert!(found.freed >= (2 + LARGE) * WORD, "it is in the second generation");
        assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
    });
}

/// The policy collects the youngest generation when it is due, and older ones when they are.
#[test]
fn the_policy_collects_young_generations() {
    const COUNT: usize = if cfg!(miri) { 120 } else { 40_000 };
    // Large nodes take as many segments as more small ones would.
    const REFERENCES: usize = if cfg!(miri) { 61 } else { 1 };
    const CAPACITY: usize = if cfg!(miri) { 2 << 10 } else { 16 << 10 };
    with_heap(1 << 20, |heap| {
        let mut policy = Policy { patience: ALL, ..Policy::with_capacity(CAPACITY) };
        policy.generations[1].capacity = 2 * CAPACITY;
        policy.generations[2].capacity = 6 * CAPACITY;
        heap.set_policy(policy);
        let pool = noting_pool::<Moved>(heap);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let (mut seen, mut reports) = (0, Vec::new());
        for index in 0..COUNT {
            // Half of the nodes are kept in a list, which is dropped now and then.
            let node = make_with(&mut point, index, REFERENCES, |at| {
                if at == 0 { slots.get(0) } else { ptr::null_mut() }
            })
            .unwrap();
            if index % 2 == 0 {
                slots.set(0, if index % (COUNT / 5) == 0 { ptr::null_mut() } else { node });
            }
            if let Some(last) = heap.last_collection().filter(|last| last.number > seen) {
                seen = last.number;
                reports.push(last.generations);
            }
        }
        let count = |generations: usize| reports.iter().filter(|found| **found == generations).count();
        let counts = [count(1), count(2), count(3)];
        assert!(counts[2] > 0 && counts[1] > counts[2] && counts[0] > counts[1], "{counts:?}");
        let (young, all) = (heap.counts().young_collections.get(), heap.counts().collections.get());
        assert_eq!((young, all), ((counts[0] + counts[1]) as u64, reports.len() as u64));
        drop(point);
        drop(mutator);
    });
}

/// A segment that mutators used is there for the next nodes after a collection of young generations, and none that they
/// did not.
#[test]
fn empty_segments_are_kept_for_the_next_nodes() {
    with_heap(256 << 10, |heap| {
        let pool = noting_pool::<Moved>(heap);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        for index in 0..160 {
            make(&mut point, index, &[ptr::null_mut(); 30]).unwrap();
        }
        point.empty();
        let total = pool.header().total();
        assert!(total > 8 * (4 << 10));
        mutator.collect_up_to(0, ALL).unwrap();
        assert_eq!(pool.header().total(), total, "all are kept");
        assert!(point.reserve(layout(0, 0)).is_ok());
        point.empty();
        mutator.collect_up_to(0, ALL).unwrap();
        assert!(pool.header().total() < total / 4, "the one that was used is kept");
        mutator.collect(ALL).unwrap();
        assert_eq!(pool.header().total(), 0);
    });
}
