//! A heap's collections, as the contract counts them and as another process reads them in a telemetry
//! file, at once (design/contract.md `.classes.collection`, design/telemetry.md `.heaps`).
#![cfg(all(target_os = "linux", not(miri)))]

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::io::Sink;
use std::thread;

use tripoint::author::{BarrierPair, Block};
use tripoint::contract::{
    Contract, DetectorSet, Guard, HotThread, NoDetectors, NoReason, Policies, Policy, PoolEvents,
    ViolationClass, ViolationSet,
};
use tripoint::gc::{self, Ams, Format, Heap, HeapOptions, Mutator, Scan, Step, SweptOptions, Tag};
use tripoint::points::Control;
use tripoint::telemetry::{FileOptions, PointLog, PointLogger, Telemetry};
use tripoint::{AllocationPoint, Arena, ArenaVm, ArenaVmOptions, BufferKind, PoolClass};
use tripoint_oracle::Party;
use tripoint_telemetry::reader::{Fields, Item, Reader, Start};

/// A pair of references.
struct Pairs;

const PAIR: Layout = Layout::new::<[*mut u8; 2]>();

// SAFETY: every object is a pair of references, and both are passed on.
unsafe impl Format for Pairs {
    unsafe fn skip(&self, _pair: NonNull<u8>) -> usize {
        PAIR.size()
    }

    unsafe fn scan(&self, pairs: Block, scan: &mut Scan<'_>) {
        let first = pairs.base().cast::<*mut u8>();
        for index in 0..pairs.size() / size_of::<*mut u8>() {
            // SAFETY: that many references are in the pairs, and no thread uses them meanwhile.
            scan.fix(unsafe { first.add(index).as_mut() });
        }
    }
}

/// Makes a pair; none if a collection came between its reserve and its commit.
fn make_pair<P: PoolClass, C: Control>(point: &mut AllocationPoint<'_, P, C>) -> Option<NonNull<u8>> {
    let pair = point.reserve(PAIR).unwrap();
    // SAFETY: the pair has room for two references.
    unsafe { pair.as_ptr().cast().write([core::ptr::null_mut::<u8>(); 2]) };
    // SAFETY: a whole pair.
    unsafe { pair.commit() }.ok()
}

type Logged<'l> = PointLogger<fn() -> bool, &'l PointLog<Sink>>;

/// A point of the mutator whose calls are logged.
///
/// # Safety
/// - As for `MutatorBuffer::attend`: only the thread that has the mutator uses the point, while the mutator is running.
unsafe fn logged_point<'p, 'h, A: Arena, B: BarrierPair>(
    pool: &'p Ams<'h, A, B, Pairs>,
    mutator: &Mutator<'h, A, B>,
    log: &'p PointLog<Sink>,
) -> AllocationPoint<'p, Ams<'h, A, B, Pairs>, Logged<'p>> {
    let is_on: fn() -> bool = || true;
    AllocationPoint::create_in(pool, BufferKind::Mutator, PointLogger::new(is_on, log), |buffer| {
        // SAFETY: as the caller promises of the point.
        unsafe { buffer.attend(mutator) };
    })
    .unwrap()
}

static CONTRACT: Contract = Contract::new();
const COLLECTIONS: usize = 3;
/// One for each collection, and one for each of two steps.
const STOPS: u64 = COLLECTIONS as u64 + 2;

/// One pair before the first collection is garbage, and two before each of the others.
const FREED: usize = (2 * COLLECTIONS - 1) * PAIR.size();

/// Registers a thread that is held to collections and pauses.
fn register(name: &'static str) -> Guard<NoReason, NoDetectors> {
    let thread = HotThread {
        classes: ViolationSet::COLLECTION | ViolationSet::PAUSE,
        detectors: DetectorSet::POOL_EVENTS,
        policies: Policies::all(Policy::Quarantine),
        ..HotThread::new(name)
    };
    CONTRACT.register_with(thread, NoDetectors).unwrap()
}

/// The numbers of a thread's collections and pauses while it was armed.
fn tallies(guard: &Guard<NoReason, NoDetectors>) -> [(usize, usize); 2] {
    [ViolationClass::Collection, ViolationClass::Pause].map(|class| {
        let tally = guard.slot().armed_tally(class);
        (tally.unexcused(), tally.bytes)
    })
}

/// What a reader sees of heaps: the name of the event, and its numbers without the arena and the heap.
fn read() -> Vec<(&'static str, Vec<u64>)> {
    let reader = Reader::attach(std::process::id()).unwrap();
    let counters = reader.counters().unwrap();
    let arena = counters.arenas.entries[0];
    let collections = COLLECTIONS as u64 + 1;
    assert_eq!((arena.stops, arena.stops_postponed), (STOPS, 1));
    assert_eq!((arena.pauses, arena.collections), (STOPS, collections));
    assert_eq!(arena.freed, FREED as u64);
    let heap = counters.heaps.entries[0];
    assert_eq!((heap.stops, heap.stops_postponed, heap.pauses), (STOPS, 1, STOPS));
    assert_eq!((heap.collections, heap.copied), (collections, 0));
    assert_eq!((heap.steps, heap.steps_late, heap.steps_ns, heap.longest_step_ns), (2, 1, 2_000, 2_000));
    let clock = heap.time_to_stop_ns.zip(heap.paused_ns);
    assert!(clock.is_some(), "all stops and waits have ended: {heap:?}");
    let mut events = reader.events(Start::Oldest);
    let mut found = Vec::new();
    while let Some(item) = events.poll() {
        let Item::Event(event) = item else { panic!("nothing was missed: {item}") };
        let numbers = match event.fields {
            Fields::BeginStop { mutator, .. }
            | Fields::PostponeStop { mutator, .. }
            | Fields::GiveWay { mutator, .. }
            | Fields::GoOn { mutator, .. } => vec![mutator],
            Fields::EndCollection { examined, kept, freed, .. } => vec![examined, kept, freed],
            Fields::BeginSweep { copied, .. } => vec![copied],
            Fields::EndStep { done, kept, freed, allowed_ns, taken_ns, .. } => {
                vec![done, kept, freed, allowed_ns, taken_ns]
            }
            Fields::BeginCollection { reason, .. } => {
                assert_eq!(reason.as_str(), Some("request"));
                vec![]
            }
            Fields::Stop { .. } | Fields::EndStop { .. } | Fields::BeginStep { .. } => vec![],
            _ => continue,
        };
        found.push((event.fields.kind().unwrap().name(), numbers));
    }
    found
}

#[test]
fn collections_are_counted_on_each_thread_and_recorded() {
    let telemetry: &'static Telemetry =
        Box::leak(Box::new(Telemetry::create(&FileOptions::default()).unwrap()));
    let hooks: &'static _ = Box::leak(Box::new((PoolEvents, telemetry.arena_hook())));
    let arena = ArenaVm::create(ArenaVmOptions { event_hook: Some(hooks), ..Default::default() }).unwrap();
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    let pool: Ams<'_, _, _, Pairs> = Ams::create(&heap, Pairs, SweptOptions::default()).unwrap();
    let [has_registered, is_armed, has_paused, is_done] = [const { AtomicBool::new(false) }; 4];
    let (polls, party) = (AtomicUsize::new(0), Party::new());
    CONTRACT.begin_init().unwrap();
    thread::scope(|scope| {
        let _member = party.enter();
        let mut mutator = heap.register().unwrap();
        let waiting = scope.spawn(|| {
            let _member = party.enter();
            let mut mutator = heap.register().unwrap();
            let guard = register("waits");
            has_registered.store(true, Ordering::SeqCst);
            party.wait_for(&is_armed);
            guard.check();
            has_paused.store(true, Ordering::SeqCst);
            party.wait_until(|| {
                mutator.poll();
                polls.fetch_add(1, Ordering::SeqCst);
                is_done.load(Ordering::SeqCst)
            });
            guard.check();
            tallies(&guard)
        });
        let guard = register("collects");
        party.wait_for(&has_registered);
        CONTRACT.begin_warmup().unwrap();
        CONTRACT.enter_steady_state(&()).unwrap();
        guard.check();
        is_armed.store(true, Ordering::SeqCst);
        party.wait_for(&has_paused);

        // SAFETY: this thread has the mutator, and uses the point while the mutator is running.
        let mut point = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), |buffer| unsafe {
            buffer.attend(&mutator)
        })
        .unwrap();
        let slot = Cell::new(core::ptr::null_mut());
        // SAFETY: the slot outlives the root, and only this thread uses it.
        let _root = unsafe { heap.root_table(NonNull::from(&slot).cast(), 1, Tag::default()) }.unwrap();
        // Until the other thread goes on: otherwise one wait may last for two stops.
        let wait_for_polls = || {
            let goes_on = polls.load(Ordering::SeqCst) + 2;
            party.wait_until(|| polls.load(Ordering::SeqCst) >= goes_on);
        };
        for _ in 0..COLLECTIONS {
            for _ in 0..2 {
                // No collection came between, because this thread makes them.
                slot.set(make_pair(&mut point).unwrap().as_ptr());
            }
            // The last one is kept.
            point.empty();
            assert_eq!(mutator.collect(Duration::MAX).unwrap().kept, PAIR.size());
            wait_for_polls();
        }
        // A step in its time, which is a whole collection, and one that takes a microsecond more than it may.
        for (taken, is_whole) in [(0, true), (2, false)] {
            let mut begin = Some(Duration::ZERO);
            let clock = || begin.take().unwrap_or(Duration::from_micros(taken));
            let mut stopped = mutator.stop(Duration::MAX).unwrap();
            let step = stopped.step_within(Duration::from_micros(1), clock);
            drop(stopped);
            assert_eq!(matches!(step, Step::Done(_)), is_whole, "{step:?}");
            wait_for_polls();
        }
        is_done.store(true, Ordering::SeqCst);
        let of_other = waiting.join().unwrap();
        guard.check();
        let bytes = FREED + COLLECTIONS * PAIR.size();
        // The second step is one more, and the first is none.
        assert_eq!(tallies(&guard), [(COLLECTIONS + 1, bytes), (0, 0)]);
        assert_eq!(of_other, [(0, 0), (STOPS as usize, 0)]);
        let heaps = guard.slot().armed_heap_tally();
        assert_eq!((heaps.stops, heaps.collections), (STOPS, COLLECTIONS as u64 + 1));
        assert_eq!((heaps.steps, heaps.steps_late, heaps.steps_ns), (2, 1, 2_000));
        assert_eq!((heaps.pauses, heaps.bytes_freed), (0, FREED as u64));
        assert!(heaps.time_to_stop_ns > 0 && heaps.stopped_ns > 0, "the other thread had to give way");
        assert!(heap.stop(Duration::ZERO).is_err(), "this thread's mutator runs");
    });

    // Events of two threads come in the order of their times, which do not matter here.
    let (of_waiting, of_collecting): (Vec<_>, Vec<_>) =
        read().into_iter().partition(|(name, _)| ["give way", "go on"].contains(name));
    let pair = PAIR.size() as u64;
    let of_stop = |events: Vec<(&'static str, Vec<u64>)>| {
        [vec![("begin stop", vec![1]), ("stop", vec![])], events, vec![("end stop", vec![])]].concat()
    };
    let sweep = ("begin sweep", vec![0]);
    let collection = |freed| {
        let end = ("end collection", vec![pair, pair, freed]);
        of_stop(vec![("begin collection", vec![]), sweep.clone(), end])
    };
    let step =
        |end: [u64; 5]| of_stop(vec![("begin step", vec![]), sweep.clone(), ("end step", end.to_vec())]);
    let steps = [step([1, pair, 0, 1_000, 0]), step([0, 0, 0, 1_000, 2_000])].concat();
    let postponed = [("begin stop", vec![0]), ("postpone stop", vec![1])];
    let collections = [collection(pair), collection(2 * pair), collection(2 * pair)].concat();
    assert_eq!(of_collecting, [collections, steps, postponed.to_vec()].concat());
    let pause = [("give way", vec![2]), ("go on", vec![2])];
    assert_eq!(of_waiting, vec![pause; STOPS as usize].concat());
}

/// A thread that gives way does so between two calls: if it held the log's lock, another could not come to where it gives
/// way, and the heap would not stop (design/point-log.md `.order.stops`).
#[test]
fn threads_whose_calls_are_logged_give_way() {
    const PAIRS: usize = 100;
    let log = PointLog::begin(std::io::sink()).unwrap();
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    let pool: Ams<'_, _, _, Pairs> = Ams::create(&heap, Pairs, SweptOptions::default()).unwrap();
    let (party, is_over) = (Party::new(), AtomicBool::new(false));
    let made = [const { AtomicUsize::new(0) }; 2];
    thread::scope(|scope| {
        let _member = party.enter();
        for made in &made {
            scope.spawn(|| {
                let _member = party.enter();
                let mutator = heap.register().unwrap();
                // SAFETY: this thread has the mutator, and uses the point while the mutator is running.
                let mut point = unsafe { logged_point(&pool, &mutator, &log) };
                party.wait_until(|| {
                    make_pair(&mut point);
                    made.fetch_add(1, Ordering::SeqCst);
                    is_over.load(Ordering::SeqCst)
                });
            });
        }
        let mut own = heap.register().unwrap();
        let mut is_stopped = true;
        for stop in 1..=10 {
            party.wait_until(|| made.iter().all(|made| made.load(Ordering::SeqCst) > stop * PAIRS));
            is_stopped &= own.stop(Duration::from_secs(60)).is_ok();
        }
        is_over.store(true, Ordering::SeqCst);
        assert!(is_stopped, "a stop was postponed: {heap:?}");
    });
}

/// A thread that collects in a fill waits for the others, which wait for the log before they give way
/// (design/point-log.md `.order.stops`).
#[test]
fn fills_of_logged_points_collect() {
    const PAIRS: Layout = Layout::new::<[[*mut u8; 2]; 256]>();
    let log = PointLog::begin(std::io::sink()).unwrap();
    let options = ArenaVmOptions { commit_limit: 4 << 20, ..ArenaVmOptions::default() };
    let arena = ArenaVm::create(options).unwrap();
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    heap.set_policy(gc::Policy { patience: Duration::from_secs(60), ..heap.policy() });
    let pool: Ams<'_, _, _, Pairs> = Ams::create(&heap, Pairs, SweptOptions::default()).unwrap();
    let party = Party::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _member = party.enter();
                let mutator = heap.register().unwrap();
                // SAFETY: this thread has the mutator, and uses the point while the mutator is running.
                let mut point = unsafe { logged_point(&pool, &mutator, &log) };
                party.wait_until(|| {
                    let pairs = point.reserve(PAIRS).unwrap();
                    // SAFETY: the memory was just reserved, and zero is a null reference.
                    unsafe { pairs.as_ptr().write_bytes(0, PAIRS.size()) };
                    // SAFETY: whole pairs. If a collection came between, they are not needed.
                    _ = unsafe { pairs.commit() };
                    heap.counts().by_refusal.get() > 0
                });
            });
        }
    });
}
