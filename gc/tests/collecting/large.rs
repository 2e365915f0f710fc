//! Objects that do not fit in a segment of the usual size (design/gc.md `.collect.large`).

use core::alloc::Layout;
use core::time::Duration;

use crate::common::{Nodes, Slots, TestHeap, WORD, layout, make, name, point, pool, with_heap, write};
use tripoint_core::{Check, CheckLevel, PoolClass};
use tripoint_gc::{Kind, Leaf, Moved, MovedLeaf, Policy, Tag, Traced};

const ALL: Duration = Duration::MAX;
/// The words behind the name of a node that takes some 16 segments of the usual size, which is 4 KiB.
const LARGE: usize = (64 << 10) / WORD;
/// How many large objects there are.
const COUNT: usize = if cfg!(miri) { 1 } else { 4 };

fn with_quiet_heap(test: impl FnOnce(&TestHeap<'_>)) {
    with_heap(1 << 20, |heap| {
        heap.set_policy(Policy::with_capacity(usize::MAX));
        test(heap);
    });
}

/// Large objects die, and one small object beside each is kept.
fn no_small_object_keeps_the_memory_of_a_large_one<K: Kind<Nodes>>(is_stressed: bool) {
    with_quiet_heap(|heap| {
        let _stressed = is_stressed.then(|| heap.stress());
        let pool = pool::<K>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<{ 2 * COUNT }>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2 * COUNT, Tag::default()) }.unwrap();
        for turn in 0..COUNT {
            slots.set(2 * turn, make(&mut point, turn, &[core::ptr::null_mut(); LARGE]).unwrap());
            slots.set(2 * turn + 1, make(&mut point, 100 + turn, &[]).unwrap());
            mutator.collect(ALL).unwrap();
            // What the sweep has found to be free.
            slots.set(2 * turn + 1, make(&mut point, 100 + turn, &[]).unwrap());
        }
        point.empty();
        pool.check(CheckLevel::Deep).unwrap();
        assert!(pool.sizes().total >= COUNT * LARGE * WORD);
        (0..COUNT).for_each(|turn| slots.set(2 * turn, core::ptr::null_mut()));
        mutator.collect(ALL).unwrap();
        pool.check(CheckLevel::Deep).unwrap();
        let total = pool.sizes().total;
        assert!(total <= 4 * (4 << 10), "{total} bytes for {COUNT} nodes of 16 bytes, class {}", K::CLASS);
        for turn in 0..COUNT {
            // SAFETY: the slot has kept the node.
            assert_eq!(unsafe { name(slots.get(2 * turn + 1)) }, 100 + turn);
        }
    });
}

#[test]
fn no_small_object_keeps_the_memory_of_a_large_one_of_any_class() {
    for is_stressed in [false, true] {
        no_small_object_keeps_the_memory_of_a_large_one::<Traced>(is_stressed);
        no_small_object_keeps_the_memory_of_a_large_one::<Leaf>(is_stressed);
        no_small_object_keeps_the_memory_of_a_large_one::<Moved>(is_stressed);
        no_small_object_keeps_the_memory_of_a_large_one::<MovedLeaf>(is_stressed);
    }
}

/// A reservation for a large object is held over a collection, which finds no object in its segment.
#[test]
fn what_is_behind_a_reservation_for_a_large_object_stays_unused() {
    with_quiet_heap(|heap| {
        let pool = pool::<Leaf>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let (mut large, mut small) = (point(&pool, &mutator), point(&pool, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let reservation = large.reserve(layout(0, LARGE)).unwrap();
        mutator.collect(ALL).unwrap();
        slots.set(0, make(&mut small, 7, &[]).unwrap());
        // SAFETY: that many bytes were reserved.
        unsafe { write(reservation.as_ptr().cast(), reservation.size(), 8, &[]) };
        // SAFETY: a whole node.
        unsafe { reservation.commit() }.unwrap();
        large.empty();
        small.empty();
        mutator.collect(ALL).unwrap();
        let total = pool.sizes().total;
        assert!(total <= 4 * (4 << 10), "{total} bytes for a node of 16 bytes");
    });
}

/// A program commits memory as one object, and divides it into many before it next gives way: before a collection nothing
/// but the size in the object says where it ends. Half of them die, and their memory is used again.
fn an_object_is_divided_after_its_commit<K: Kind<Nodes>>(bytes: usize) {
    const NODE: usize = 4 * WORD;
    with_quiet_heap(|heap| {
        let pool = pool::<K>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<{ (32 << 10) / NODE }>::default();
        let count = bytes / NODE;
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), count, Tag::default()) }.unwrap();
        let reservation = point.reserve(Layout::from_size_align(bytes, WORD).unwrap()).unwrap();
        let place = reservation.as_ptr().cast::<usize>();
        // SAFETY: that many bytes were reserved.
        unsafe { write(place, reservation.size(), 0, &[]) };
        // SAFETY: the words behind the name need not be written before a collection.
        let object = unsafe { reservation.commit() }.unwrap();
        for index in 0..count {
            // SAFETY: the node is in the object.
            let node = unsafe { object.add(index * NODE) };
            // SAFETY: there is room for a node of that many bytes.
            unsafe { write(node.cast(), NODE, index, &[core::ptr::null_mut(); 2]) };
            slots.set(index, node.as_ptr());
        }
        for round in 0..3 {
            mutator.collect(ALL).unwrap();
            pool.check(CheckLevel::Deep).unwrap();
            for index in (0..count).filter(|index| round == 0 || index % 2 == 0) {
                // SAFETY: the slot has kept the node.
                assert_eq!(unsafe { name(slots.get(index)) }, index, "in round {round}");
            }
            (0..count)
                .filter(|index| index % 2 == 1)
                .for_each(|index| slots.set(index, core::ptr::null_mut()));
        }
        let sizes = pool.sizes();
        assert!(
            sizes.free >= count / 2 * NODE && sizes.largest_free >= NODE,
            "{sizes:?} after half of {count} died"
        );
    });
}

#[test]
fn objects_that_are_divided_after_their_commit_live_and_die_one_by_one() {
    for bytes in [2 << 10, 32 << 10] {
        an_object_is_divided_after_its_commit::<Traced>(bytes);
        an_object_is_divided_after_its_commit::<Moved>(bytes);
    }
}
