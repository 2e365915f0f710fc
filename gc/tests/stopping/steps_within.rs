//! Steps that are allowed a time, by a clock of the test (design/gc-steps.md `.within`).

use core::cell::Cell;
use core::time::Duration;
use std::sync::Mutex;

use crate::common::{Arena, Yield};
use proptest::prelude::*;
use tripoint_core::{ClientArena, ClientArenaOptions, Collected, Event, EventHook, StepTime, SymmetricFence};
use tripoint_gc::{
    Cause, Gc, Heap, HeapOptions, Link, Message, Policy, Postponed, Rooted, Step, SweptOptions, TypedMutator,
    TypedObjects, object_types,
};
use tripoint_oracle::cases;

const ALL: Duration = Duration::MAX;

object_types! {
    struct Node<'g> {
        links: Gc<'g, [Link<'g, Node<'g>>]>,
    }
}

/// Keeps the events of steps and collections.
#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    fn take(&self) -> Vec<Event> {
        core::mem::take(&mut *self.0.lock().unwrap())
    }

    /// The times of the steps since the last call, and what those found that ended a collection.
    fn steps(&self) -> Vec<(Option<StepTime>, Option<Collected>)> {
        let of_step = |event| match event {
            Event::EndStep { collected, time, .. } => Some((time, collected)),
            _ => None,
        };
        self.take().into_iter().filter_map(of_step).collect()
    }
}

impl EventHook for Recorder {
    fn event(&self, event: Event) {
        let is_kept = matches!(
            event,
            Event::BeginStep { .. }
                | Event::EndStep { .. }
                | Event::BeginCollection { .. }
                | Event::BeginSweep { .. }
                | Event::EndCollection { .. }
        );
        if is_kept {
            self.0.lock().unwrap().push(event);
        }
    }
}

type TestHeap<'m> = Heap<'m, Arena<'m>, SymmetricFence>;
type Objects<'m> = TypedObjects<'m, Arena<'m>, SymmetricFence>;
type Mutator<'o, 'm> = TypedMutator<'o, 'm, Arena<'m>, SymmetricFence>;

/// Runs `test` with a heap that has a graph of many pieces.
fn with_graph(test: impl for<'o, 'm> FnOnce(&'m TestHeap<'m>, &mut Mutator<'o, 'm>, &Recorder)) {
    let recorder = Recorder::default();
    let mut memory = Box::new_uninit_slice(1 << 20);
    let options = ClientArenaOptions { grain: Some(1 << 10), event_hook: Some(&recorder) };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    heap.set_policy(Policy::with_capacity(usize::MAX));
    let objects = TypedObjects::create(&heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
    let mut mutator = objects.register().unwrap();
    let _root = graph(&objects, &mut mutator);
    recorder.take();
    test(&heap, &mut mutator, &recorder);
}

/// Nodes, each of a piece or more, and as many that are dead.
fn graph<'o, 'm>(objects: &'o Objects<'m>, mutator: &mut Mutator<'o, 'm>) -> Rooted<'o, Node<'static>> {
    mutator.enter(|inside| {
        let mut last = None;
        for _ in 0..24 {
            let links = |last| inside.slice(600, |index| Link::new(if index == 599 { last } else { None }));
            inside.alloc(Node { links: links(last).unwrap() }).unwrap();
            last = Some(inside.alloc(Node { links: links(last).unwrap() }).unwrap());
        }
        objects.root(inside, last.unwrap()).unwrap()
    })
}

/// A clock that shows a later time whenever it is read: so a piece takes as long as that.
struct Clock {
    now: Cell<u64>,
    per_look: Cell<u64>,
}

impl Clock {
    fn new(per_look: u64) -> Self {
        Self { now: Cell::new(1_000), per_look: Cell::new(per_look) }
    }

    fn read(&self) -> Duration {
        self.now.set(self.now.get() + self.per_look.get());
        Duration::from_nanos(self.now.get())
    }
}

const fn ns(count: u64) -> Duration {
    Duration::from_nanos(count)
}

#[test]
fn steps_keep_to_their_time_and_end_a_collection() {
    with_graph(|heap, mutator, recorder| {
        let clock = Clock::new(10);
        let mut steps = 1;
        let mut marking = 0;
        let report = loop {
            match mutator.step_within(ns(55), || clock.read()).unwrap() {
                Step::Done(report) => break report,
                step => {
                    steps += 1;
                    marking += usize::from(matches!(step, Step::Marking { .. }));
                }
            }
        };
        assert!(report.freed > 0 && report.kept > 0);
        assert!(steps > 4, "{steps} steps");
        let found = recorder.steps();
        assert_eq!(found.len(), steps);
        for (index, (time, collected)) in found.iter().enumerate() {
            let time = time.unwrap();
            // The end of the marking is not divided into pieces.
            assert!(time.is_in_time() || index == marking, "{index}: {time:?}");
            assert_eq!(time.allowed, ns(55));
            let last = Collected { kept: report.kept, freed: report.freed };
            assert_eq!(*collected, (index + 1 == steps).then_some(last));
        }
        let counts = heap.counts();
        assert_eq!(counts.steps.get(), steps as u64);
        assert!(counts.late_steps.get() <= 1);
        let taken = found.iter().map(|(time, _)| time.unwrap().taken_ns());
        assert_eq!(counts.step_time.get(), taken.clone().sum::<u64>());
        assert_eq!(Some(counts.longest_step.get()), taken.max());
        assert_eq!(counts.collections.get(), 1);
    });
}

/// The negative control of the test above: what takes longer is seen, however short.
#[test]
fn a_step_that_takes_longer_is_seen() {
    with_graph(|heap, mutator, recorder| {
        // A piece of 10 fits, and one of 46 does not, after which the step ends.
        let clock = Clock::new(10);
        let mut looks = 0;
        let step = mutator.step_within(ns(55), || {
            looks += 1;
            clock.per_look.set(if looks == 4 { 46 } else { 0 });
            clock.read()
        });
        assert!(matches!(step, Ok(Step::Marking { .. })));
        let time = StepTime { allowed: ns(55), taken: ns(46) };
        assert_eq!(recorder.steps(), [(Some(time), None)]);
        assert_eq!(heap.counts().late_steps.get(), 0, "46 of 55: another such piece would not fit");
        let clock = Clock::new(56);
        assert!(mutator.step_within(ns(55), || clock.read()).is_ok());
        let [(Some(time), None)] = recorder.steps()[..] else { panic!("one step") };
        assert!(!time.is_in_time() && time.taken > time.allowed, "{time:?}");
        let counts = heap.counts();
        assert_eq!((counts.steps.get(), counts.late_steps.get()), (2, 1));
        assert_eq!(counts.longest_step.get(), time.taken_ns());
    });
}

/// A step does a piece in any case, so collections end, and each step is late.
#[test]
fn steps_that_are_allowed_no_time_do_a_piece_and_are_late() {
    with_graph(|heap, mutator, recorder| {
        let clock = Clock::new(1);
        while !matches!(mutator.step_within(Duration::ZERO, || clock.read()), Ok(Step::Done(_))) {}
        let found = recorder.steps();
        assert!(found.len() > 10 && found.iter().all(|(time, _)| !time.unwrap().is_in_time()));
        assert_eq!(heap.counts().late_steps.get(), found.len() as u64);
    });
}

/// A time without end is no limit: it is a collection by another name.
#[test]
fn a_step_that_is_allowed_any_time_is_a_whole_collection() {
    for allowed in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
        with_graph(|_, mutator, recorder| {
            let clock = Clock::new(1 << 40);
            assert!(matches!(mutator.step_within(allowed, || clock.read()), Ok(Step::Done(_))));
            let [(Some(time), Some(_))] = recorder.steps()[..] else { panic!("one step") };
            assert!(time.taken < time.allowed && !time.is_in_time());
        });
    }
}

#[test]
fn a_caller_without_a_clock_has_no_times() {
    with_graph(|heap, mutator, recorder| {
        while !matches!(mutator.step(ALL, || false), Ok(Step::Done(_))) {}
        assert!(recorder.steps().iter().all(|(time, _)| time.is_none()));
        assert_eq!((heap.counts().step_time.get(), heap.counts().longest_step.get()), (0, 0));
        assert!(heap.counts().steps.get() > 10);
    });
}

/// The wait for the stop counts, and a step that does not get its stop is none.
#[test]
fn a_step_waits_for_its_stop_in_its_own_time() {
    with_graph(|heap, _, recorder| {
        let running = heap.register().unwrap();
        let clock = Clock::new(1);
        let number = running.number();
        let step = heap.step_within(ns(20), || clock.read());
        assert!(matches!(step, Err(Postponed::Late(late)) if late.number == number), "{step:?}");
        assert_eq!((recorder.steps().len(), heap.counts().steps.get()), (0, 0));
        assert_eq!(heap.counts().postponed.get(), 1);
        drop(running);
        // A stop that is there already costs nothing.
        let mut stopped = heap.stop(ALL).unwrap();
        clock.now.set(5_000_000);
        stopped.step_within(ns(20), || clock.read());
        assert!(recorder.steps()[0].0.unwrap().is_in_time());
    });
}

/// Another collection gives up marks, and sweeps the rest of what was marked: that is a step of its own, without a
/// time, and not a part of the other collection.
#[test]
fn what_ends_a_collection_in_steps_is_told() {
    with_graph(|heap, mutator, recorder| {
        heap.enable_messages(16).unwrap();
        let messages = || {
            let mutator = heap.register().unwrap();
            core::iter::from_fn(move || mutator.next_message()).collect::<Vec<_>>()
        };
        assert!(matches!(mutator.step(ALL, || false), Ok(Step::Marking { .. })));
        let whole = mutator.collect(ALL).unwrap();
        let expected = [
            Message::Began { number: 1, cause: Cause::Step },
            Message::GivenUp { number: 1 },
            Message::Began { number: 1, cause: Cause::Requested },
            Message::Ended(whole),
        ];
        assert_eq!(messages(), expected);
        while !matches!(mutator.step(ALL, || false), Ok(Step::Sweeping { .. })) {}
        recorder.take();
        let whole = mutator.collect(ALL).unwrap();
        let [began, swept, began_whole, ended] = messages()[..] else { panic!("four messages") };
        assert_eq!(began, Message::Began { number: 2, cause: Cause::Step });
        let Message::Ended(steps) = swept else { panic!("{swept:?}") };
        assert_eq!((steps.number, steps.cause), (2, Cause::Step));
        assert_eq!(began_whole, Message::Began { number: 3, cause: Cause::Requested });
        assert_eq!((ended, whole.number), (Message::Ended(whole), 3));
        let events = recorder.take();
        let collected = Some(Collected { kept: steps.kept, freed: steps.freed });
        assert!(
            matches!(events[..2], [Event::BeginStep { .. }, Event::EndStep { collected: found, time: None, .. }]
            if found == collected),
            "{events:?}"
        );
        assert!(
            matches!(
                events[2..],
                [Event::BeginCollection { .. }, Event::BeginSweep { .. }, Event::EndCollection { .. },]
            ),
            "{events:?}"
        );
    });
}

/// Events come in order. That of the end of the marking comes once, in the step that ends it.
#[test]
fn a_collection_in_steps_tells_when_it_begins_to_sweep() {
    with_graph(|heap, mutator, recorder| {
        let mut has_marked = false;
        loop {
            let step = mutator.step(ALL, || false).unwrap();
            let events = recorder.take();
            let marks = matches!(events[..], [_, Event::BeginSweep { copied: 0, .. }, Event::EndStep { .. }]);
            let is_end_of_marking = !has_marked && !matches!(step, Step::Marking { .. });
            assert_eq!(marks, is_end_of_marking, "{events:?}");
            assert_eq!(events.len(), if marks { 3 } else { 2 });
            has_marked |= marks;
            if let Step::Done(_) = step {
                break;
            }
        }
        assert!(has_marked);
        assert_eq!(heap.counts().copied.get(), 0);
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 1 } else { 32 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the clock shows: each step says what its caller's clock showed, late is what took longer, and the
    /// collection ends.
    #[test]
    fn steps_say_what_the_clock_shows(
        allowed in 0_u64..200,
        looks in prop::collection::vec(0_u64..60, 1..50),
    ) {
        with_graph(|heap, mutator, recorder| {
            let (clock, mut look, mut late) = (Clock::new(0), 0, 0);
            loop {
                let (mut first, mut last) = (None, 0);
                let step = mutator.step_within(ns(allowed), || {
                    look += 1;
                    clock.per_look.set(looks[look % looks.len()]);
                    let now = clock.read();
                    (first, last) = (first.or(Some(now)), clock.now.get());
                    now
                });
                let taken = ns(last) - first.unwrap();
                let [(Some(time), _)] = recorder.steps()[..] else { panic!("one step") };
                assert_eq!(time, StepTime { allowed: ns(allowed), taken });
                assert_eq!(time.is_in_time(), taken <= ns(allowed));
                late += u64::from(taken > ns(allowed));
                assert_eq!(heap.counts().late_steps.get(), late);
                if let Ok(Step::Done(_)) = step {
                    break;
                }
            }
        });
    }
}
