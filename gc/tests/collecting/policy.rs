//! Collections that a heap begins by itself (design/gc.md `.policy.due`).

use core::ptr;
use core::time::Duration;
use std::thread;

use crate::common::{Slots, TestHeap, WORD, make, name, point, pool, reference, with_heap};
use proptest::prelude::*;
use tripoint_core::Error;
use tripoint_gc::{
    Cause, GENERATIONS, GenerationPolicy, Leaf, Moved, Nearness, Policy, Postponed, Step, Tag, Traced,
};
use tripoint_oracle::cases;

const ALL: Duration = Duration::MAX;

/// The segments of the pools of these tests.
const SEGMENT: usize = 4 << 10;

fn policy(capacity: usize, mortality: u32) -> Policy {
    Policy { generations: [GenerationPolicy { capacity, mortality }; GENERATIONS], patience: ALL }
}

/// Allocates lists, of which slots keep some, in a heap of a policy, and compares each collection with what
/// `expected` says.
fn follow(heap: &TestHeap<'_>, policy: Policy, expected: Policy, lists: &[(usize, usize)]) {
    heap.set_policy(policy);
    assert_eq!(heap.policy(), policy);
    let pool = pool::<Traced>(heap, 0);
    let mut mutator = heap.register().unwrap();
    let mut point = point(&pool, &mutator);
    let slots = Slots::<4>::default();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots.base(), 4, Tag::default()) }.unwrap();
    let node = 3 * WORD;
    let (mut lengths, mut threshold, mut clock, mut seen) =
        ([0; 4], expected.generations[GENERATIONS - 1].capacity, 0, 0);
    for &(slot, length) in lists {
        slots.set(slot, ptr::null_mut());
        lengths[slot] = 0;
        for index in 0..length {
            let found = make(&mut point, index, &[slots.get(slot)]).unwrap();
            if let Some(last) = heap.last_collection().filter(|last| last.number > seen) {
                assert_eq!((last.number, last.cause), (seen + 1, Cause::Threshold));
                assert!(last.allocated >= threshold, "{last} at a threshold of {threshold}");
                assert!(last.allocated < threshold + SEGMENT, "{last} at a threshold of {threshold}");
                let live: usize = lengths.iter().sum();
                assert_eq!(last.kept, live * node, "nothing but what slots keep");
                clock += last.allocated as u64;
                assert_eq!(last.clock, clock);
                let expected = expected.generations[GENERATIONS - 1];
                let mortality = expected.mortality as usize;
                let part = last.kept * mortality / (1000 - mortality);
                (threshold, seen) = (expected.capacity.max(part), last.number);
            }
            slots.set(slot, found);
            lengths[slot] += 1;
        }
    }
    let counts = heap.counts();
    assert_eq!((counts.by_threshold.get(), counts.collections.get()), (seen, seen));
    point.empty();
    let live: usize = lengths.iter().sum();
    let last = mutator.collect(ALL).unwrap();
    assert_eq!((last.cause, last.kept), (Cause::Requested, live * node));
    assert_eq!(heap.last_collection(), Some(last));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 1 } else { 64 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_collection_begins_when_the_policy_says(
        capacity in prop_oneof![Just(0_usize), 1_usize..(64 << 10)],
        mortality in 0_u32..900,
        lists in prop::collection::vec((0_usize..4, 1_usize..if cfg!(miri) { 20 } else { 400 }), 0..40),
    ) {
        let policy = policy(capacity, mortality);
        with_heap(2 << 20, |heap| follow(heap, policy, policy, &lists));
    }
}

/// The twin: a policy that is compared with another one.
#[test]
#[should_panic(expected = "at a threshold of")]
fn a_threshold_that_is_not_the_policys_is_noticed() {
    let lists: Vec<_> = (0..12).map(|index| (index % 4, if cfg!(miri) { 100 } else { 400 })).collect();
    with_heap(1 << 20, |heap| follow(heap, policy(8 << 10, 500), policy(8 << 10, 900), &lists));
}

/// The references of a node of which many are made: Miri makes few that are large.
const REFERENCES: usize = if cfg!(miri) { 62 } else { 6 };

/// Makes leaves that nothing refers to.
macro_rules! litter {
    ($point:expr, $bytes:expr) => {
        for _ in 0..$bytes / ((2 + REFERENCES) * WORD) {
            make($point, 0, &[ptr::null_mut(); REFERENCES]).unwrap();
        }
    };
}

#[test]
fn a_parked_heap_begins_no_collection() {
    with_heap(256 << 10, |heap| {
        heap.set_policy(policy(8 << 10, 500));
        let pool = pool::<Leaf>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let (first, second) = (heap.park(), heap.park());
        litter!(&mut point, 32 << 10);
        assert!(heap.is_due());
        first.release();
        litter!(&mut point, 32 << 10);
        assert_eq!((heap.counts().collections.get(), heap.last_collection()), (0, None));
        assert_eq!(mutator.collect(ALL).unwrap().number, 1, "what the program asks for is done");
        assert!(!heap.is_due());
        litter!(&mut point, 16 << 10);
        drop(second);
        litter!(&mut point, SEGMENT);
        assert_eq!((heap.counts().by_threshold.get(), heap.counts().collections.get()), (1, 2));
        assert!(heap.last_collection().unwrap().allocated >= 8 << 10);
    });
}

#[test]
fn a_fill_that_is_refused_memory_collects_once() {
    with_heap(32 << 10, |heap| {
        heap.set_policy(policy(usize::MAX, 0));
        let pool = pool::<Traced>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        litter!(&mut point, 128 << 10);
        let last = heap.last_collection().unwrap();
        assert_eq!((last.cause, last.kept), (Cause::Refused, 0));
        assert_eq!(last.mortality(), 1000);
        assert!(last.number >= 4, "four times the memory of the arena: {last}");
        // All that is there is kept.
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let linked = || {
            let mut references = [ptr::null_mut(); REFERENCES];
            references[0] = slots.get(0);
            references
        };
        let mut length = 0;
        while let Ok(node) = make(&mut point, length, &linked()) {
            slots.set(0, node);
            length += 1;
        }
        let full = heap.last_collection().unwrap();
        assert_eq!(
            (full.cause, full.kept, full.freed),
            (Cause::Refused, length * (2 + REFERENCES) * WORD, 0)
        );
        assert_eq!(make(&mut point, 0, &linked()), Err(Error::Limit));
        let again = heap.last_collection().unwrap();
        assert_eq!(again.number, full.number + 1, "each request that is refused collects once");
        slots.set(0, ptr::null_mut());
        let parked = heap.park();
        assert_eq!(make(&mut point, 0, &linked()), Err(Error::Limit), "not while it is parked");
        assert_eq!(heap.last_collection(), Some(again));
        parked.release();
        assert!(make(&mut point, 0, &linked()).is_ok());
        assert_eq!(heap.counts().by_refusal.get(), heap.counts().collections.get());
    });
}

/// A collection that is not had in time is no error of the fill, and is not tried again at the next.
#[test]
fn a_fill_goes_on_if_its_collection_is_postponed() {
    with_heap(512 << 10, |heap| {
        heap.set_policy(Policy { patience: Duration::ZERO, ..policy(16 << 10, 500) });
        let pool = pool::<Leaf>(heap, 0);
        let mutator = heap.register().unwrap();
        let mut late = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        litter!(&mut point, 40 << 10);
        assert_eq!(heap.counts().postponed.get(), 2, "at 16 KiB, and at 32");
        assert_eq!(heap.counts().collections.get(), 0);
        late.away(|| litter!(&mut point, 20 << 10));
        assert_eq!((heap.counts().by_threshold.get(), heap.counts().postponed.get()), (1, 2));
        assert!(matches!(heap.stop(Duration::ZERO).map(drop), Err(Postponed::Late(_))), "both run");
    });
}

/// A mutator that parks the heap while another waits to collect it is in time.
#[test]
fn a_collection_that_waits_is_given_up_when_the_heap_is_parked() {
    with_heap(256 << 10, |heap| {
        heap.set_policy(policy(8 << 10, 500));
        let pool = pool::<Leaf>(heap, 0);
        let mut parker = heap.register().unwrap();
        thread::scope(|scope| {
            let pool = &pool;
            let filler = scope.spawn(move || {
                let mutator = heap.register().unwrap();
                let mut point = point(pool, &mutator);
                litter!(&mut point, 16 << 10);
            });
            // The stop lasts until this mutator gives way.
            tripoint_oracle::wait_until(|| heap.wants_stop() || filler.is_finished());
            assert!(!filler.is_finished(), "the filler found no collection due");
            let _parked = heap.park();
            parker.away(|| filler.join().unwrap());
        });
        assert_eq!(heap.counts().stops.get(), 1, "it was stopped");
        assert_eq!(heap.counts().collections.get(), 0, "and not collected");
    });
}

/// (design/gc.md `.req.kept`)
#[test]
fn threads_whose_fills_collect_keep_what_they_build() {
    // Each thread needs more than one fill, so that one of them finds a collection due.
    let (rounds, length) = if cfg!(miri) { (2, 120) } else { (40, 100) };
    with_heap(4 << 20, |heap| {
        heap.set_policy(policy(1 << 10, 100));
        let pool = pool::<Traced>(heap, 0);
        thread::scope(|scope| {
            for thread in 0..3 {
                let pool = &pool;
                scope.spawn(move || {
                    let mut mutator = heap.register().unwrap();
                    let mut point = point(pool, &mutator);
                    let slots = Slots::<1>::default();
                    // SAFETY: the slots outlive the root, and only this thread uses them while it runs.
                    let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
                    for round in 0..rounds {
                        slots.set(0, ptr::null_mut());
                        for index in 0..length {
                            let label = (thread * rounds + round) * length + index;
                            slots.set(0, make(&mut point, label, &[slots.get(0)]).unwrap());
                        }
                        mutator.away(thread::yield_now);
                        let mut node = slots.get(0);
                        for index in (0..length).rev() {
                            let label = (thread * rounds + round) * length + index;
                            // SAFETY: the slot keeps all nodes of the list.
                            assert_eq!(unsafe { name(node) }, label);
                            // SAFETY: the slot keeps all nodes of the list.
                            node = unsafe { reference(node, 0) };
                        }
                        assert!(node.is_null());
                    }
                });
            }
        });
        let counts = heap.counts();
        assert!(counts.by_threshold.get() > 0);
        assert_eq!(counts.by_threshold.get(), counts.collections.get());
        assert_eq!(heap.collect(ALL).unwrap().kept, 0);
    });
}

/// A heap that is parked says what is due, and what one that is not would collect.
#[test]
fn a_program_sees_which_generation_is_due() {
    with_heap(1 << 20, |heap| {
        let of = |capacity| GenerationPolicy { capacity, mortality: 500 };
        heap.set_policy(Policy { generations: [of(16 << 10), of(40 << 10), of(64 << 10)], patience: ALL });
        let (moved, stays) = (pool::<Moved>(heap, 0), pool::<Traced>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut point, mut staying) = (point(&moved, &mutator), point(&stays, &mutator));
        let parked = heap.park();
        assert_eq!(heap.due().generations.map(Nearness::thousandths), [0; GENERATIONS]);
        let (mut seen, mut collected) = (0, Vec::new());
        for index in 0..6_000 {
            make(&mut point, index, &[]).unwrap();
            make(&mut staying, index, &[]).unwrap();
            let due = heap.due();
            assert_eq!((due.in_steps, due.oldest().is_some()), (None, heap.is_due()));
            for (number, generation) in due.generations.iter().enumerate() {
                assert_eq!(generation.is_due(), generation.left() == 0);
                assert_eq!(generation.is_due(), generation.thousandths() >= 1000);
                assert!(!generation.is_due() || due.oldest() >= Some(number));
            }
            assert!(due.generations[0].new >= seen, "what was allocated is new");
            seen = due.generations[0].new;
            if let Some(oldest) = due.oldest() {
                let found = mutator.collect_up_to(oldest, ALL).unwrap();
                assert_eq!(found.generations, oldest + 1);
                assert_eq!(heap.due().generations[..=oldest].iter().map(|one| one.new).sum::<usize>(), 0);
                assert_eq!(heap.due().oldest(), None);
                (seen, _) = (0, collected.push(oldest));
            }
        }
        assert!(collected.contains(&0) && collected.contains(&(GENERATIONS - 1)), "{collected:?}");
        // The twin: one that is not parked collects when it says that one is due, and not before.
        drop(parked);
        let counts = heap.counts();
        let before = counts.by_threshold.get();
        while heap.due().oldest().is_none() {
            make(&mut point, 0, &[]).unwrap();
            assert_eq!(counts.by_threshold.get(), before);
        }
        while counts.by_threshold.get() == before {
            assert!(heap.due().oldest().is_some());
            make(&mut point, 0, &[]).unwrap();
        }
    });
}

/// In steps the whole heap is due or nothing is, as the heap itself goes by.
#[test]
fn in_steps_the_whole_heap_is_due_or_nothing_is() {
    with_heap(1 << 20, |heap| {
        let of = |capacity| GenerationPolicy { capacity, mortality: 500 };
        heap.set_policy(Policy { generations: [of(8 << 10), of(8 << 10), of(64 << 10)], patience: ALL });
        let pool = pool::<Moved>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let _parked = heap.park();
        assert!(matches!(mutator.step(ALL, || false), Ok(Step::Sweeping { .. })), "nothing is there");
        while heap.due().oldest().is_none() {
            make(&mut point, 0, &[]).unwrap();
            let whole = heap.due().in_steps.unwrap();
            assert_eq!((whole.due_at, whole.new), (64 << 10, heap.due().generations[0].new));
        }
        assert!(heap.due().generations[0].new >= 64 << 10);
        assert_eq!(heap.due().oldest(), Some(GENERATIONS - 1));
        while !matches!(mutator.step(ALL, || true), Ok(Step::Done(_))) {}
        assert_eq!((heap.due().in_steps, heap.due().oldest()), (None, None));
    });
}
