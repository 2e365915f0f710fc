//! What heaps report to the hook of their arena (design/gc.md `.events`).

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::thread;

use crate::common::{TestHeap, WORD, Yield, make, point, pool};
use tripoint_core::{
    Addr, AddrRange, Arena as _, ClientArena, ClientArenaOptions, Event, EventHook, PoolClass as _, PoolId,
    SymmetricFence,
};
use tripoint_gc::{Heap, HeapOptions, Leaf, Postponed, Traced};
use tripoint_oracle::Party;

const ALL: Duration = Duration::MAX;

/// Keeps the events of heaps, and unwinds at one of them.
#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<Event>>,
    /// How many events come before the one at which it unwinds; zero for none.
    unwinds_at: AtomicUsize,
}

impl Recorder {
    fn take(&self) -> Vec<Event> {
        core::mem::take(&mut *self.events.lock().unwrap())
    }

    fn has(&self, wanted: Event) -> bool {
        self.events.lock().unwrap().contains(&wanted)
    }
}

impl EventHook for Recorder {
    fn event(&self, event: Event) {
        let is_of_heap = matches!(
            event,
            Event::BeginStop { .. }
                | Event::Stop { .. }
                | Event::PostponeStop { .. }
                | Event::EndStop { .. }
                | Event::GiveWay { .. }
                | Event::GoOn { .. }
                | Event::BeginCollection { .. }
                | Event::BeginSweep { .. }
                | Event::EndCollection { .. }
                | Event::BeginStep { .. }
                | Event::EndStep { .. }
        );
        if is_of_heap {
            // Counted under the lock too, so that each event is counted once in the order in which they come.
            let mut events = self.events.lock().unwrap();
            events.push(event);
            let unwinds_at = self.unwinds_at.load(Ordering::Relaxed);
            self.unwinds_at.store(unwinds_at.saturating_sub(1), Ordering::Relaxed);
            drop(events);
            if unwinds_at == 1 {
                resume_unwind(Box::new("on purpose"));
            }
        }
    }
}

/// Runs `test` with a heap, its address and what it reports.
fn with_heap(test: impl FnOnce(&TestHeap<'_>, Addr, &Recorder)) {
    let recorder = Recorder::default();
    let mut memory = Box::new_uninit_slice(256 << 10);
    let options = ClientArenaOptions { grain: Some(1 << 10), event_hook: Some(&recorder) };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    test(&heap, Addr::of(&raw const heap), &recorder);
}

/// The events of a collection that a mutator asks for.
fn of_collection(heap: Addr, mutator: u32, [examined, kept, freed]: [usize; 3]) -> [Event; 6] {
    [
        Event::BeginStop { heap, mutator },
        Event::Stop { heap },
        Event::BeginCollection { heap, reason: "request" },
        Event::BeginSweep { heap, copied: 0 },
        Event::EndCollection { heap, examined, kept, freed },
        Event::EndStop { heap },
    ]
}

#[test]
fn a_collection_reports_its_stop_and_what_it_found() {
    with_heap(|heap, address, recorder| {
        let (nodes, leaves) = (pool::<Traced>(heap, 0), pool::<Leaf>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let slots = crate::common::Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, tripoint_gc::Tag::default()) }.unwrap();
        let leaf = make(&mut leaf_point, 1, &[]).unwrap();
        make(&mut node_point, 2, &[leaf]).unwrap();
        slots.set(0, make(&mut node_point, 3, &[leaf]).unwrap());
        node_point.empty();
        leaf_point.empty();
        let found = mutator.collect(ALL).unwrap();
        // Two nodes of three words, one of them reachable, and a leaf of two, which is not examined.
        assert_eq!((found.examined, found.kept, found.freed), (3 * WORD, 5 * WORD, 3 * WORD));
        let sizes = [found.examined, found.kept, found.freed];
        assert_eq!(recorder.take(), of_collection(address, mutator.number(), sizes));
        drop((node_point, leaf_point));
        slots.set(0, core::ptr::null_mut());
        mutator.away(|| heap.collect(ALL)).unwrap();
        assert_eq!(recorder.take(), of_collection(address, 0, [0, 0, 5 * WORD]));
        assert_eq!(heap.counts().pauses.get(), 0, "no mutator waited");
    });
}

/// Keeps the flips.
#[derive(Default)]
struct Flips(Mutex<Vec<(PoolId, Addr, AddrRange)>>);

impl EventHook for Flips {
    fn event(&self, event: Event) {
        if let Event::Flip { pool, buffer, objects } = event {
            self.0.lock().unwrap().push((pool, buffer, objects));
        }
    }
}

/// A collection flips the points that have memory and a rank, once each, and says which objects it saw.
#[test]
fn flips_at_a_stop_are_reported_with_the_objects_that_they_saw() {
    let flips = Flips::default();
    let mut memory = Box::new_uninit_slice(256 << 10);
    let options = ClientArenaOptions { grain: Some(1 << 10), event_hook: Some(&flips) };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    let (nodes, leaves) = (pool::<Traced>(&heap, 0), pool::<Leaf>(&heap, 0));
    let mut mutator = heap.register().unwrap();
    let (mut point_of_nodes, mut point_of_leaves) = (point(&nodes, &mutator), point(&leaves, &mutator));
    let _without_memory = point(&nodes, &mutator);
    let made = Addr::of(make(&mut point_of_nodes, 1, &[]).unwrap());
    make(&mut point_of_nodes, 2, &[]).unwrap();
    // Points of this class have no rank.
    make(&mut point_of_leaves, 1, &[]).unwrap();
    mutator.collect(ALL).unwrap();
    let (id, buffer) = (nodes.header().id(), point_of_nodes.buffer().id());
    let objects = AddrRange::new(made, Addr::new(made.get() + 2 * 2 * WORD)).unwrap();
    assert_eq!(*flips.0.lock().unwrap(), [(id, buffer, objects)]);
    assert_eq!(arena.counts().flips.get(), 1);
}

#[test]
fn a_stop_that_is_postponed_names_the_mutator() {
    with_heap(|heap, address, recorder| {
        let _first = heap.register().unwrap();
        let mut second = heap.register().unwrap();
        let late = second.stop(Duration::ZERO).map(drop);
        assert!(matches!(late, Err(Postponed::Late(late)) if late.number == 1));
        let of_second = [
            Event::BeginStop { heap: address, mutator: 2 },
            Event::PostponeStop { heap: address, mutator: 1 },
        ];
        assert_eq!(recorder.take(), of_second);
        drop(_first);
        let _stopped = second.stop(ALL).unwrap();
        recorder.take();
        assert_eq!(heap.collect(Duration::ZERO), Err(Postponed::Busy));
        let of_busy = [
            Event::BeginStop { heap: address, mutator: 0 },
            Event::PostponeStop { heap: address, mutator: 0 },
        ];
        assert_eq!(recorder.take(), of_busy);
    });
}

#[test]
fn mutators_report_that_they_give_way_and_go_on() {
    with_heap(|heap, address, recorder| {
        let mut own = heap.register().unwrap();
        let (is_registered, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        let party = Party::new();
        thread::scope(|scope| {
            let _member = party.enter();
            scope.spawn(|| {
                let _member = party.enter();
                let mut mutator = heap.register().unwrap();
                is_registered.store(true, Ordering::SeqCst);
                party.wait_until(|| {
                    mutator.poll();
                    is_done.load(Ordering::SeqCst)
                });
            });
            party.wait_for(&is_registered);
            drop(own.stop(ALL).unwrap());
            is_done.store(true, Ordering::SeqCst);
        });
        let (heap_of, other) = (address, 2);
        let expected = [
            Event::BeginStop { heap: heap_of, mutator: own.number() },
            Event::GiveWay { heap: heap_of, mutator: other },
            Event::Stop { heap: heap_of },
            Event::EndStop { heap: heap_of },
            Event::GoOn { heap: heap_of, mutator: other },
        ];
        assert_eq!(recorder.take(), expected);
        assert_eq!(heap.counts().pauses.get(), 1);
    });
}

/// A mutator that is away waits for nothing, unless it comes back while the heap is stopped.
#[test]
fn a_mutator_that_comes_back_during_a_stop_gives_way() {
    with_heap(|heap, address, recorder| {
        let (is_away, is_stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let party = Party::new();
        thread::scope(|scope| {
            let _member = party.enter();
            scope.spawn(|| {
                let _member = party.enter();
                let mut mutator = heap.register().unwrap();
                mutator.away(|| {
                    is_away.store(true, Ordering::SeqCst);
                    party.wait_for(&is_stopped);
                });
            });
            party.wait_for(&is_away);
            drop(heap.stop(ALL).unwrap());
            assert!(!recorder.has(Event::GiveWay { heap: address, mutator: 1 }), "it is away");
            let _stopped = heap.stop(ALL).unwrap();
            is_stopped.store(true, Ordering::SeqCst);
            party.wait_until(|| recorder.has(Event::GiveWay { heap: address, mutator: 1 }));
        });
        let events = recorder.take();
        let ends = [Event::EndStop { heap: address }, Event::GoOn { heap: address, mutator: 1 }];
        assert!(events.ends_with(&ends), "{events:?}");
        assert_eq!(heap.counts().pauses.get(), 1);
    });
}

/// Whatever unwinds, the heap goes on, and a mutator that runs is waited for.
#[test]
fn a_heap_outlives_hooks_and_trips_that_unwind() {
    with_heap(|heap, _, recorder| {
        let mut mutator = heap.register().unwrap();
        let is_late = || matches!(heap.stop(Duration::ZERO).map(drop), Err(Postponed::Late(_)));
        let unwinds = |work: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(work)).is_err();
        // All events of a collection, one after the other, but the one in its middle.
        for event in [1, 2, 3, 5, 6] {
            recorder.unwinds_at.store(event, Ordering::Relaxed);
            assert!(unwinds(&mut || _ = mutator.collect(ALL)), "event {event}");
            assert!(!heap.wants_stop() && is_late(), "event {event}");
        }
        assert!(unwinds(
            &mut || _ = mutator.stop_with(ALL, || resume_unwind(Box::new("on purpose"))).map(drop)
        ));
        assert!(!heap.wants_stop() && is_late());
        // And of a stop that is postponed.
        let _late = heap.register().unwrap();
        for event in 1..=2 {
            recorder.unwinds_at.store(event, Ordering::Relaxed);
            assert!(unwinds(&mut || _ = mutator.collect(Duration::ZERO)));
            assert!(!heap.wants_stop() && is_late());
        }
    });
}

#[test]
fn a_mutator_waits_for_the_end_of_a_stop_also_if_a_hook_unwinds() {
    for event in [2, 5] {
        with_heap(|heap, _, recorder| {
            let (is_registered, has_unwound) = (AtomicBool::new(false), AtomicBool::new(false));
            let party = Party::new();
            thread::scope(|scope| {
                let _member = party.enter();
                scope.spawn(|| {
                    let _member = party.enter();
                    let mut mutator = heap.register().unwrap();
                    is_registered.store(true, Ordering::SeqCst);
                    party.wait_until(|| catch_unwind(AssertUnwindSafe(|| mutator.poll())).is_err());
                    assert!(!heap.wants_stop(), "the stop has ended");
                    has_unwound.store(true, Ordering::SeqCst);
                });
                party.wait_for(&is_registered);
                // The second event is that the mutator gives way, and the fifth that it goes on.
                recorder.unwinds_at.store(event, Ordering::Relaxed);
                let stopped = heap.stop(ALL).unwrap();
                assert!(!has_unwound.load(Ordering::SeqCst), "it waits");
                drop(stopped);
            });
            assert!(has_unwound.load(Ordering::SeqCst));
        });
    }
}
