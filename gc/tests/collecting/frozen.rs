//! Frozen segments: the four operations against a naive account, and collections beside them (design/gc.md
//! `.req.frozen`).

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use crate::common::{Nodes, Raise, Slots, WORD, make, point, pool, with_heap, write};
use proptest::prelude::*;
use tripoint_core::{Addr, Arena, Block, Error};
use tripoint_gc::{FrozenFault, FrozenSegment, Tag, Traced};
use tripoint_oracle::cases;

/// Memory of a test, in words.
fn block(words: &mut [usize]) -> Block {
    // SAFETY: the slice, which the tests keep as long as they use the block.
    unsafe { Block::new(NonNull::from(&mut *words).cast(), size_of_val(words)) }
}

fn at(memory: Block, byte: usize) -> *const u8 {
    memory.base().as_ptr().wrapping_add(byte)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A place, and bytes of it: the first, and how many.
    Register {
        place: usize,
        first: usize,
        filled: usize,
    },
    Update {
        place: usize,
        filled: usize,
    },
    Unregister {
        place: usize,
    },
}

const PLACES: usize = 5;
/// The bytes of a place.
const SIZE: usize = 4 * WORD;

fn step() -> impl Strategy<Value = Step> {
    let (place, byte) = (0..PLACES, 0..SIZE + 3);
    prop_oneof![
        3 => (place.clone(), byte.clone(), byte.clone())
            .prop_map(|(place, first, filled)| Step::Register { place, first, filled }),
        3 => (place.clone(), byte).prop_map(|(place, filled)| Step::Update { place, filled }),
        2 => place.prop_map(|place| Step::Unregister { place }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 4 } else { 256 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every address is in a frozen segment exactly if one that is registered has it.
    #[test]
    fn the_four_operations_do_what_they_say(steps in prop::collection::vec(step(), 0..40)) {
        with_heap(32 << 10, |heap| {
            // A gap between two places, so that the enclosing range has addresses of none.
            let mut words = [0_usize; PLACES * 5];
            let all = block(&mut words);
            let memory = |place: usize| {
                // SAFETY: the place is in the array.
                unsafe { Block::new(all.base().add(place * 5 * WORD), SIZE) }
            };
            let mut segments: [Option<FrozenSegment<'_, _, _>>; PLACES] = Default::default();
            let mut ranges: [Option<(usize, usize)>; PLACES] = Default::default();
            for step in steps {
                match step {
                    Step::Register { place, first, filled } => {
                        // SAFETY: no thread uses the array, which has no objects.
                        let made = unsafe { heap.register_frozen(memory(place), first..filled) };
                        let is_right = first <= filled && filled <= SIZE && ranges[place].is_none();
                        assert_eq!(made.is_ok(), is_right);
                        if let Ok(segment) = made {
                            (segments[place], ranges[place]) = (Some(segment), Some((first, filled)));
                        }
                    }
                    Step::Update { place, filled } => {
                        let (Some(segment), Some((first, old))) = (&mut segments[place], ranges[place]) else {
                            continue;
                        };
                        // SAFETY: no thread uses the array, which has no objects.
                        let is_moved = unsafe { segment.update(filled) }.is_ok();
                        assert_eq!(is_moved, first <= filled && filled <= SIZE);
                        ranges[place] = Some((first, if is_moved { filled } else { old }));
                    }
                    Step::Unregister { place } => {
                        if let Some(segment) = segments[place].take() {
                            segment.unregister();
                        }
                        ranges[place] = None;
                    }
                }
                for (place, range) in ranges.iter().enumerate() {
                    for byte in 0..5 * WORD {
                        let expected = range.is_some_and(|(first, filled)| first <= byte && byte < filled);
                        assert_eq!(heap.is_in_frozen(at(memory(place), byte)), expected, "{place} {byte}");
                    }
                }
            }
        });
    }
}

/// References to frozen objects are left alone: nothing is written there, and nothing is kept by them.
#[test]
fn collections_do_not_look_at_frozen_objects() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        let mut words = [0_usize; 6];
        let memory = block(&mut words);
        let (first, second) = (memory.base().cast::<usize>(), at(memory, 3 * WORD).cast_mut());
        // SAFETY: there is room for two nodes of three words.
        unsafe { write(first, 3 * WORD, 1, &[second]) };
        // SAFETY: there is room for two nodes of three words, and this is the second.
        unsafe { write(first.add(3), 3 * WORD, 2, &[first.as_ptr().cast()]) };
        // SAFETY: the nodes do not change, and refer to each other only.
        let mut segment = unsafe { heap.register_frozen(memory, 0..3 * WORD) }.unwrap();
        assert!(!heap.is_in_frozen(second));
        // SAFETY: there is a second node.
        unsafe { segment.update(6 * WORD) }.unwrap();
        assert!(heap.is_in_frozen(second));
        // SAFETY: the segment is of nodes.
        let checked = unsafe { segment.check(pool.format()) };
        assert_eq!(checked, Ok(2));
        let before = words_of(memory);
        // The heap refers to what is frozen, as roots do.
        slots.set(0, make(&mut point, 3, &[first.as_ptr().cast()]).unwrap());
        slots.set(1, second);
        point.empty();
        for _ in 0..2 {
            let found = mutator.collect(Duration::MAX).unwrap();
            assert_eq!((found.kept, found.freed, found.references), (3 * WORD, 0, 3));
        }
        assert_eq!(words_of(memory), before, "no mark was left");
        // A frozen node that refers to the heap keeps nothing, and a check finds it.
        let node = slots.get(0);
        // SAFETY: the node is in the array, which no other thread uses.
        unsafe { crate::common::set_reference(second, 0, node) };
        let fault = FrozenFault::Reference { object: Addr::of(second), to: Addr::of(node) };
        // SAFETY: the segment is of nodes.
        assert_eq!(unsafe { segment.check(pool.format()) }, Err(fault));
        slots.set(0, ptr::null_mut());
        assert_eq!(mutator.collect(Duration::MAX).unwrap().kept, 0);
        // SAFETY: as many nodes as before, and half of one.
        unsafe { segment.update(5 * WORD) }.unwrap();
        let fault = FrozenFault::Size { object: Addr::of(second), size: 3 * WORD };
        // SAFETY: the segment is of nodes, the last of which is not whole.
        assert_eq!(unsafe { segment.check(pool.format()) }, Err(fault));
    });
}

fn words_of(memory: Block) -> Vec<usize> {
    // SAFETY: the words of an array of a test, which no other thread uses.
    (0..memory.size() / WORD).map(|word| unsafe { memory.base().cast::<usize>().add(word).read() }).collect()
}

#[test]
fn memory_of_the_heap_or_of_another_segment_is_refused() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let node = make(&mut point, 1, &[]).unwrap();
        let refused = |memory: Block| {
            // SAFETY: no thread uses the memory, and it is refused.
            matches!(unsafe { heap.register_frozen(memory, 0..0) }, Err(Error::Parameter(_)))
        };
        let range = heap.arena().range();
        let base = heap.arena().provenance().as_ptr().with_addr(range.base().get());
        // SAFETY: a node, and all of the arena: neither is null, and the blocks are not used for access.
        let [own, all] = [(node, 1), (base, range.size())]
            .map(|(base, size)| unsafe { Block::new(NonNull::new_unchecked(base), size) });
        assert!(refused(own) && refused(all));
        let mut words = [0_usize; 8];
        let memory = block(&mut words);
        // SAFETY: no thread uses the array, which has no objects.
        let segment = unsafe { heap.register_frozen(memory, 0..WORD) }.unwrap();
        let (front, end) = memory.split_at(4 * WORD).unwrap();
        assert!(refused(front) && refused(end) && refused(memory));
        assert!(heap.is_in_frozen(at(memory, 0)), "what was refused has changed nothing");
        segment.unregister();
        assert!(!refused(front));
        // What a manual pool has of the same arena is no memory of the heap.
        let manual = heap.arena().register().unwrap();
        let tracts = heap.arena().alloc_tracts(1 << 10, manual).unwrap();
        assert!(!refused(tracts));
        // SAFETY: the pool's number is used no more, and no thread uses its memory.
        unsafe { heap.arena().unregister(manual) };
    });
}

#[test]
fn records_are_used_again() {
    with_heap(64 << 10, |heap| {
        let mut words = [0_usize; 4];
        let memory = block(&mut words);
        let own = || heap.arena().sizes().own;
        // SAFETY: no thread uses the array, which has no objects.
        drop(unsafe { heap.register_frozen(memory, 0..WORD) }.unwrap());
        let before = own();
        for _ in 0..if cfg!(miri) { 50 } else { 2000 } {
            // SAFETY: no thread uses the array, which has no objects.
            drop(unsafe { heap.register_frozen(memory, 0..WORD) }.unwrap());
        }
        assert_eq!(own(), before);
    });
}

/// Threads ask while others register and collect: what stays registered is always found, and what is in no segment
/// never.
#[test]
fn threads_ask_while_segments_come_and_go() {
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    with_heap(64 << 10, |heap| {
        let mut words = [0_usize; 12];
        let memory = block(&mut words);
        let (low, rest) = memory.split_at(4 * WORD).unwrap();
        let (middle, high) = rest.split_at(4 * WORD).unwrap();
        // SAFETY: no thread uses the array, which has no objects.
        let _stays = unsafe { heap.register_frozen(middle, WORD..2 * WORD) }.unwrap();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _done = Raise(&is_done);
                for round in 0..rounds {
                    let memory = if round % 2 == 0 { low } else { high };
                    // SAFETY: no thread uses the array, which has no objects.
                    let mut segment = unsafe { heap.register_frozen(memory, 0..WORD) }.unwrap();
                    // SAFETY: no thread uses the array, which has no objects, and so much is in its memory.
                    unsafe { segment.update(2 * WORD) }.unwrap();
                    heap.collect(Duration::MAX).unwrap();
                }
            });
            while !is_done.load(Ordering::Acquire) {
                assert!(heap.is_in_frozen(at(middle, WORD)));
                assert!([0, 2 * WORD, 3 * WORD].iter().all(|byte| !heap.is_in_frozen(at(middle, *byte))));
                assert!(!heap.is_in_frozen(at(low, 2 * WORD)) && !heap.is_in_frozen(at(high, 2 * WORD)));
                thread::yield_now();
            }
        });
    });
}

#[test]
fn a_segment_may_be_empty() {
    with_heap(16 << 10, |heap| {
        let mut words = [0_usize; 2];
        let memory = block(&mut words);
        // SAFETY: no thread uses the array, which has no objects.
        let segment = unsafe { heap.register_frozen(memory, 0..0) }.unwrap();
        assert_eq!(segment.memory(), memory);
        let nodes = Nodes::new(0);
        // SAFETY: there are no objects.
        assert_eq!(unsafe { segment.check(&nodes) }, Ok(0));
    });
}
