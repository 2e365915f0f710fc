//! What mutators write between the steps of a collection, and what else happens there (design/gc-steps.md
//! `.req.bound`, `.req.progress`).

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;

use crate::common::{AtWork, Nodes, Slots, TestMutator, TestPool, WORD, with_heap};
use tripoint_core::{Addr, Check, CheckLevel, PoolClass};
use tripoint_gc::{
    Cause, Kind, Link, Message, Moved, Policy, Step, Swept, SweptOptions, Tag, Traced, TypedObjects,
    object_types,
};

const ALL: Duration = Duration::MAX;

/// The references of a node. Under Miri fewer nodes, which are larger, take as many steps.
const REFERENCES: usize = if cfg!(miri) { 61 } else { 1 };
/// The bytes of a node.
const SIZE: usize = (2 + REFERENCES) * WORD;
/// Nodes for several steps.
const NODES: usize = if cfg!(miri) { 30 } else { 1000 };

/// Runs `test` with a pool in whose heap nothing is due, a mutator, and slots that are a root. Writes of nodes are noted, or
/// are not.
fn with_pool<K: Kind<Nodes>>(
    is_noted: bool,
    test: impl for<'m> FnOnce(TestPool<'m, K>, &mut TestMutator<'m>, &Slots<2>),
) {
    with_heap(1 << 20, |heap| {
        heap.set_policy(Policy::with_capacity(usize::MAX));
        let nodes = Nodes { header: 0, forgets: AtomicBool::new(false), notes_writes: is_noted };
        let pool = Swept::create(heap, nodes, SweptOptions { segment_size: 64 << 10 }).unwrap();
        let mut mutator = heap.register().unwrap();
        let slots = Slots::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        test(pool, &mut mutator, &slots);
    });
}

/// Allocates nodes one behind the other. `reference` returns what one refers to, by its number and the node before.
fn make_nodes<K: Kind<Nodes>>(
    pool: &TestPool<'_, K>,
    mutator: &TestMutator<'_>,
    nodes: usize,
    reference: impl Fn(usize, *mut u8) -> *mut u8,
) -> Vec<*mut u8> {
    let mut point = crate::common::point(pool, mutator);
    let mut made: Vec<*mut u8> = Vec::new();
    for index in 0..nodes {
        let last = made.last().copied().unwrap_or(ptr::null_mut());
        let to = |at: usize| if at == 0 { reference(index, last) } else { ptr::null_mut() };
        made.push(crate::common::make_with(&mut point, index, REFERENCES, to).unwrap());
    }
    made
}

/// Allocates nodes each of which refers to the one before.
fn make_list<K: Kind<Nodes>>(
    pool: &TestPool<'_, K>,
    mutator: &TestMutator<'_>,
    nodes: usize,
) -> Vec<*mut u8> {
    make_nodes(pool, mutator, nodes, |_, last| last)
}

/// Allocates a node that refers to nothing.
fn make_node<K: Kind<Nodes>>(pool: &TestPool<'_, K>, mutator: &TestMutator<'_>) -> *mut u8 {
    make_nodes(pool, mutator, 1, |_, _| ptr::null_mut())[0]
}

/// Whether an object is there.
fn is_there(mutator: &mut TestMutator<'_>, object: *mut u8) -> bool {
    mutator.stop(ALL).unwrap().object_at(object).is_some()
}

/// Steps of a piece each, until the collection is over. Returns how many there were.
fn finish(mutator: &mut TestMutator<'_>) -> usize {
    let (mut steps, mut sum) = (1, 0);
    loop {
        match mutator.step(ALL, || false).unwrap() {
            // A piece, and the last piece of what was written or of roots before it.
            Step::Marking { examined } => {
                assert!(examined <= 3 * 4096, "{examined} bytes");
                sum += examined;
            }
            Step::Done(report) => {
                assert!(report.examined >= sum, "{report} of steps that examined {sum} bytes");
                assert!(report.references > 0 || report.examined == 0, "{report:?}");
                return steps;
            }
            _ => {}
        }
        steps += 1;
    }
}

/// The only reference to a node that is not marked yet moves into one that is. Returns whether the node is kept.
fn hide<K: Kind<Nodes>>(is_noted: bool, is_note_forgotten: bool) -> bool {
    let mut is_kept = false;
    with_pool::<K>(is_noted, |pool, mutator, slots| {
        // The first is scanned first. Of the list behind it each refers to the one before, so the second is scanned last:
        // it refers to the hidden one, which is behind all of them.
        let nodes =
            make_nodes(&pool, mutator, NODES, |index, last| if index < 2 { ptr::null_mut() } else { last });
        let (first, second) = (nodes[0], nodes[1]);
        let hidden = make_node(&pool, mutator);
        // SAFETY: the node is there.
        unsafe { crate::common::set_reference(second, 0, hidden) };
        pool.note_write(mutator, second);
        slots.set(0, first);
        slots.set(1, nodes[NODES - 1]);
        assert!(matches!(mutator.step(ALL, || false), Ok(Step::Marking { .. })));
        // SAFETY: roots keep both nodes, which did not move.
        unsafe {
            crate::common::set_reference(first, 0, hidden);
            crate::common::set_reference(second, 0, ptr::null_mut());
        }
        if is_noted && !is_note_forgotten {
            pool.note_write(mutator, first);
        }
        assert!(finish(mutator) > 2);
        is_kept = is_there(mutator, hidden);
        assert!(is_there(mutator, first) && is_there(mutator, second));
    });
    is_kept
}

#[test]
fn an_object_that_mutators_hide_is_kept() {
    assert!(hide::<Traced>(true, false), "the write is noted");
    assert!(hide::<Traced>(false, false), "all is looked at again");
    assert!(hide::<Moved>(true, false));
    assert!(hide::<Moved>(false, false));
}

/// The control of the test above: it is the note that keeps the object.
#[test]
fn an_object_that_is_hidden_without_a_note_is_lost() {
    assert!(!hide::<Traced>(true, true));
    assert!(!hide::<Moved>(true, true));
}

/// Weak references are cleared, and objects to be finalized are found, by the step that ends the marking.
#[test]
fn weak_references_and_finalization_come_last() {
    with_pool::<Traced>(true, |pool, mutator, slots| {
        let weak = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _weak = unsafe { mutator.heap().root_weak(weak.base(), 2, Tag::default()) }.unwrap();
        let nodes = make_list(&pool, mutator, NODES);
        slots.set(0, nodes[NODES - 3]);
        let (dead, last_words) = (nodes[NODES - 2], nodes[NODES - 1]);
        // SAFETY: the node is there.
        unsafe { crate::common::set_reference(last_words, 0, ptr::null_mut()) };
        pool.note_write(mutator, last_words);
        weak.set(0, dead);
        weak.set(1, nodes[0]);
        mutator.finalize(NonNull::new(last_words).unwrap()).unwrap();
        // Found only when another collection is over.
        mutator.finalize(NonNull::new(nodes[NODES / 2]).unwrap()).unwrap();
        assert!(matches!(mutator.step(ALL, || false), Ok(Step::Marking { .. })));
        assert_eq!((weak.get(0), mutator.next_message()), (dead, None), "nothing is decided yet");
        assert!(finish(mutator) > 2);
        assert_eq!([weak.get(0), weak.get(1)], [ptr::null_mut(), nodes[0]]);
        assert_eq!(mutator.next_message(), NonNull::new(last_words).map(Message::Finalizable));
        assert_eq!(mutator.next_message(), None);
        assert!(!is_there(mutator, dead) && is_there(mutator, nodes[0]));
        slots.set(0, ptr::null_mut());
        finish(mutator);
        assert_eq!(mutator.next_message(), NonNull::new(nodes[NODES / 2]).map(Message::Finalizable));
        assert_eq!(weak.get(1), nodes[0], "what is to be finalized leads there");
        finish(mutator);
        assert_eq!(weak.get(1), ptr::null_mut());
    });
}

/// Everything else that uses marks begins anew, and so does the next step.
#[test]
fn other_collections_and_walks_give_up_the_one_in_steps() {
    with_pool::<Traced>(true, |pool, mutator, slots| {
        let nodes = make_list(&pool, mutator, NODES);
        slots.set(0, nodes[NODES - 1]);
        let whole = finish(mutator);
        let reports = mutator.heap().counts().collections.get();
        assert_eq!((reports, mutator.heap().last_collection().unwrap().cause), (1, Cause::Step));
        for other in 0..3 {
            for _ in 0..whole / 2 {
                assert!(matches!(mutator.step(ALL, || false), Ok(Step::Marking { .. })));
            }
            match other {
                0 => drop(mutator.collect(ALL).unwrap()),
                1 => mutator.stop(ALL).unwrap().walk_objects(|_| ()),
                _ => {
                    let mut table = [tripoint_gc::PathStep::default(); NODES + 1];
                    let stopped = mutator.stop(ALL).unwrap();
                    assert_eq!(stopped.path_to(nodes[0], &mut table).unwrap().steps.len(), NODES);
                }
            }
            assert_eq!(finish(mutator), whole, "it began anew");
            assert!(nodes.iter().all(|node| is_there(mutator, *node)));
        }
        // A pool that is dropped takes its part with it.
        slots.set(0, ptr::null_mut());
        mutator.step(ALL, || false).unwrap();
        drop(pool);
        finish(mutator);
        let found = mutator.collect(ALL).unwrap();
        assert_eq!(found.kept, 0);
    });
}

/// While a collection is in steps, one of young generations is not due, and afterwards it is again (design/gc-steps.md
/// `.alone`).
#[test]
fn young_generations_wait_for_the_end_of_the_steps() {
    with_pool::<Moved>(true, |pool, mutator, slots| {
        slots.set(0, make_list(&pool, mutator, NODES)[NODES - 1]);
        let mut policy = Policy::with_capacity(usize::MAX);
        policy.generations[0].capacity = 4 << 10;
        mutator.heap().set_policy(policy);
        assert!(mutator.heap().is_due());
        assert!(matches!(mutator.step(ALL, || false), Ok(Step::Marking { .. })));
        assert!(!mutator.heap().is_due());
        finish(mutator);
        assert!(!mutator.heap().is_due(), "nothing is new");
        make_list(&pool, mutator, NODES);
        assert!(mutator.heap().is_due());
    });
}

/// Between the last step that marks and the last that sweeps a pool is whole, and its memory is in use as it becomes
/// free.
#[test]
fn what_waits_to_be_swept_is_not_free_before() {
    const MANY: usize = if cfg!(miri) { 400 } else { 20_000 };
    const KEPT: usize = MANY * 2 / 5;
    with_pool::<Traced>(true, |pool, mutator, slots| {
        let nodes = make_list(&pool, mutator, MANY);
        // All that are behind this one die, among them those of whole segments.
        slots.set(0, nodes[KEPT]);
        let (total, mut sweeping, mut last_free) = (pool.sizes().total, 0, 0);
        let report = loop {
            let step = mutator.step(ALL, || false).unwrap();
            if matches!(step, Step::Marking { .. }) && !mutator.heap().counts().stops.get().is_multiple_of(50)
            {
                continue;
            }
            assert_eq!(pool.check(CheckLevel::Deep), Ok(()), "after {step:?}");
            let mut free = 0;
            pool.walk_free(&mut |block| free += block.size());
            assert_eq!(free, pool.sizes().free, "after {step:?}");
            match step {
                Step::Sweeping { .. } => {
                    sweeping += 1;
                    assert!(free >= last_free, "{free} after {last_free}");
                    last_free = free.saturating_sub(SIZE);
                    // What is allocated meanwhile is not taken for dead.
                    let fresh = make_node(&pool, mutator);
                    assert!(is_kept_by_pool(&pool, fresh));
                }
                Step::Done(report) => break report,
                _ => {}
            }
        };
        assert!(sweeping > if cfg!(miri) { 1 } else { 5 }, "{sweeping} steps for {total} bytes");
        assert_eq!((report.cause, report.freed), (Cause::Step, (MANY - 1 - KEPT) * SIZE));
        assert_eq!(report.kept, (KEPT + 1 + sweeping) * SIZE);
        assert!(pool.sizes().total < total, "empty segments are returned");
    });
}

/// Whether the memory of an object is in use.
fn is_kept_by_pool<K: Kind<Nodes>>(pool: &TestPool<'_, K>, object: *mut u8) -> bool {
    let mut is_free = false;
    pool.walk_free(&mut |block| is_free |= block.range().contains(Addr::of(object)));
    !is_free
}

/// If memory is refused while segments wait, they are swept, and then all is collected.
#[test]
fn refused_memory_ends_the_steps() {
    // More than half of the arena.
    const MANY: usize = if cfg!(miri) { 360 } else { 30_000 };
    with_pool::<Traced>(true, |pool, mutator, slots| {
        for phase in 0..2 {
            slots.set(0, make_list(&pool, mutator, MANY)[MANY / 3]);
            let is_there = |step| match step {
                Step::Marking { .. } => phase == 0,
                Step::Sweeping { .. } => phase == 1,
                step => panic!("{step:?}"),
            };
            while !is_there(mutator.step(ALL, || false).unwrap()) {}
            let before = mutator.heap().counts().by_refusal.get();
            // More than is left.
            make_list(&pool, mutator, MANY);
            assert_eq!(mutator.heap().counts().by_refusal.get(), before + 1, "phase {phase}");
            assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
        }
    });
}

object_types! {
    struct Item<'g> {
        number: usize,
        next: Link<'g, Item<'g>>,
    }
}

/// Threads build lists and exchange their parts, while one steps.
#[test]
fn threads_write_while_a_collection_is_in_steps() {
    const THREADS: usize = 3;
    let (rounds, length) = if cfg!(miri) { (2, 20) } else { (20, 200) };
    with_heap(8 << 20, |heap| {
        let _parked = heap.park();
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 64 << 10 }).unwrap();
        let at_work = AtomicUsize::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (objects, at_work) = (&objects, AtWork(&at_work));
                scope.spawn(move || {
                    let _at_work = at_work;
                    let mut mutator = objects.register().unwrap();
                    let list = mutator
                        .enter(|inside| {
                            let first = inside.alloc(Item { number: 0, next: Link::default() })?;
                            objects.root(inside, first)
                        })
                        .unwrap();
                    for round in 0..rounds {
                        for number in 1..length {
                            // The rest of the list hangs behind the first item at all times, which is marked early.
                            mutator
                                .enter(|inside| {
                                    let first = list.get(inside)?;
                                    let next = Link::new(first.next.get());
                                    first.next.set(inside, inside.alloc(Item { number, next })?);
                                    Ok::<_, tripoint_core::Error>(())
                                })
                                .unwrap();
                        }
                        mutator.enter(|inside| {
                            let first = list.get(inside).unwrap();
                            let mut found = first.next.get();
                            for number in (1..length).rev() {
                                let item = found.unwrap();
                                assert_eq!(item.number, number, "thread {thread}, round {round}");
                                found = item.next.get();
                            }
                            assert!(found.is_none());
                            first.next.set(inside, None);
                        });
                    }
                });
            }
            let mut done = 0;
            while at_work.load(Ordering::Acquire) != 0 || done == 0 {
                let step = heap.step(ALL, || false).unwrap();
                done += usize::from(matches!(step, Step::Done(_)));
            }
        });
        assert_eq!(heap.collect(ALL).unwrap().kept, 0);
        assert_eq!(objects.sizes().total, 0);
    });
}

/// Any place in the segments of a pool may be noted, also where no object can be.
#[test]
fn a_note_of_any_place_is_looked_at() {
    with_pool::<Traced>(true, |pool, mutator, slots| {
        let nodes = make_list(&pool, mutator, NODES);
        slots.set(0, nodes[NODES - 1]);
        let mut segments = Vec::new();
        mutator.stop(ALL).unwrap().walk_segments(|segment| segments.push(segment.memory));
        assert!(matches!(mutator.step(ALL, || false), Ok(Step::Marking { .. })));
        for segment in segments {
            for offset in (0..segment.size()).step_by(64) {
                pool.note_write(mutator, segment.base().as_ptr().wrapping_add(offset));
            }
        }
        finish(mutator);
        assert!(is_there(mutator, nodes[0]));
    });
}
