//! The log of points has every call as it was made, whole and in order (design/point-log.md).

use core::alloc::Layout;
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::io::{self, Write};
use std::sync::Mutex;

use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Addr, Arena, BufferKind, ClientArena, ClientArenaOptions, Error, Event, EventHook, PoolBox, PoolClass,
    PoolOptions, RankSet, Store,
};
use tripoint_oracle::{Random, in_time};
use tripoint_pools::{
    CacheClass, CacheClasses, Depot, Mfs, MfsOptions, Mvff, MvffOptions, Snc, SncOptions, UnitLayout,
};
use tripoint_telemetry::format::{LOG_HEADER_WORDS, WORD_BYTES};
use tripoint_telemetry::reader::{Fields, RecordedEvent};
use tripoint_telemetry::{LogError, LogReader, LoggedPool, PointLog, PointLogger};

/// Keeps events.
#[derive(Default)]
struct Events(Mutex<Vec<Event>>);

impl Events {
    fn take(&self) -> Vec<Event> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

impl EventHook for Events {
    fn event(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

const ARENA: usize = 1 << 20;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// (design/point-log.md `.req.passed`)
#[test]
fn every_call_has_what_was_passed_also_if_it_is_refused() {
    let (events, mut memory) = (Events::default(), Box::new_uninit_slice(ARENA));
    let options = ClientArenaOptions { grain: Some(4096), event_hook: Some(&events) };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let [Event::CreateArena { grain: 4096, memory, range, .. }] = events.take()[..] else { panic!() };
    assert!(memory.size() == ARENA && memory.covers(range));
    let options = MvffOptions { extend_by: 5000, fill_size: 3000, spare: 70_000, bin_blocks: 9 };
    let pool = LoggedPool::new(Mvff::create(&arena, options).unwrap(), || true, &events);
    let id = pool.header().id();
    let passed = PoolOptions::new([5000, 3000, 70_000, 9]);
    assert_eq!(events.take(), [Event::CreatePool { pool: id, options: passed, class: "MVFF" }]);
    let logger = PointLogger::new(|| true, &events);
    let mut point = AllocationPoint::create_with(&pool, BufferKind::Internal, logger).unwrap();
    let buffer = point.buffer().id();
    let (kind, ranks) = (BufferKind::Internal, RankSet::empty());
    assert_eq!(events.take(), [Event::CreatePoint { pool: id, buffer, ranks, kind }]);

    let reservation = point.reserve(layout(100, 64)).unwrap();
    let (object, size) = (Addr::of(reservation.as_ptr().as_ptr()), reservation.size());
    drop(reservation);
    let reserved = events.take().pop();
    let expected = Event::Reserve {
        pool: id,
        buffer,
        object,
        size,
        unit: size,
        requested: 100,
        align: 64,
        type_name: None,
    };
    assert_eq!(reserved, Some(expected));
    assert_eq!(point.reserve(layout(2 * ARENA, 32)).map(drop), Err(Error::Limit));
    let (requested, align, error) = (2 * ARENA, 32, Error::Limit);
    let expected = Event::RefuseReserve { pool: id, buffer, requested, align, type_name: None, error };
    assert_eq!(events.take().pop(), Some(expected));

    let boxed = point.boxed([0_u16; 50]).unwrap();
    let object = Addr::of(&raw const *boxed);
    events.take();
    drop(boxed);
    assert_eq!(events.take(), [Event::Free { pool: id, object, size: 100, align: 2 }]);
    let boxed = point.boxed([0_u16; 50]).unwrap();
    let object = Addr::of(&raw const *boxed);
    events.take();
    point.free_box(boxed);
    assert_eq!(events.take(), [Event::FreeAtPoint { pool: id, buffer, object, size: 100, align: 2 }]);
    point.empty();
    assert_eq!(events.take().pop(), Some(Event::EmptyPoint { pool: id, buffer }));
}

/// (design/point-log.md `.req.passed`)
#[test]
fn a_pool_reports_what_it_refuses_and_resizes() {
    const LARGE: usize = 160 << 10;
    let (events, mut memory) = (Events::default(), Box::new_uninit_slice(128 << 10));
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = LoggedPool::new(Mvff::create(&arena, MvffOptions::default()).unwrap(), || true, &events);
    let id = pool.header().id();
    let large = layout(LARGE, 64);
    let error = pool.alloc(large).unwrap_err();
    let (size, align) = (large.size(), 64);
    assert_eq!(events.take(), [Event::RefuseAlloc { pool: id, size, align, type_name: None, error }]);
    let refused = PoolBox::new_in([0_u8; LARGE], &pool);
    assert!(refused.is_err());
    let [Event::RefuseAlloc { type_name, .. }] = events.take()[..] else { panic!() };
    assert_eq!(type_name, Some(core::any::type_name::<[u8; LARGE]>()));
    let (from, same_room, larger) = (layout(50, 8), layout(60, 8), layout(5000, 8));
    let object = pool.alloc(from).unwrap();
    events.take();
    for (to, is_resized) in [(same_room, true), (larger, false)] {
        // SAFETY: allocated in this pool with this layout, or one of the same room and alignment, and not freed.
        let resized = unsafe { pool.resize(object, from, to) };
        assert_eq!(resized.is_some(), is_resized);
        let at = Addr::of(object.as_ptr());
        let event = Event::Resize {
            pool: id,
            object: at,
            size: 50,
            align: 8,
            new_size: to.size(),
            new_align: 8,
            resized: if is_resized { at } else { Addr::ZERO },
        };
        assert_eq!(events.take(), [event]);
    }
    // SAFETY: allocated in this pool with this layout, freed once, and not used any more.
    unsafe { pool.free(object, from) };
}

/// Runs a program in an arena with this hook.
fn program(hook: &dyn EventHook, seed: u64) {
    let (mut random, mut memory) = (Random::new(seed), Box::new_uninit_slice(ARENA));
    let options = ClientArenaOptions { grain: Some(4096), event_hook: Some(hook) };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let units = Mfs::create(&arena, UnitLayout::new(layout(48, 16)).unwrap(), MfsOptions::default()).unwrap();
    let units = LoggedPool::new(units, || true, Dyn(hook));
    let stack = Snc::create(&arena, SncOptions::default()).unwrap();
    let mut point =
        AllocationPoint::create_with(&units, BufferKind::Mutator, PointLogger::new(|| true, Dyn(hook)))
            .unwrap();
    let mut frames =
        AllocationPoint::create_with(&stack, BufferKind::Mutator, PointLogger::new(|| true, Dyn(hook)))
            .unwrap();
    let mut kept = Vec::new();
    for _ in 0..20 {
        kept.push(point.boxed([random.number(); 5]).unwrap());
        if random.once_in(3) {
            kept.swap_remove(random.below(kept.len()));
        }
        frames.scope(|frame| _ = frame.slice(random.below(100) + 1, |_| 0_u64).unwrap());
    }
}

/// A hook behind a reference to any.
struct Dyn<'h>(&'h dyn EventHook);

impl EventHook for Dyn<'_> {
    fn event(&self, event: Event) {
        self.0.event(event);
    }

    fn begin_call(&self) {
        self.0.begin_call();
    }

    fn end_call(&self) {
        self.0.end_call();
    }
}

/// (design/point-log.md `.file`)
#[test]
fn a_log_has_the_events_of_its_hook_in_order() {
    let (events, log) = (Events::default(), PointLog::begin(Vec::new()).unwrap());
    program(&(&events, &log), 1);
    let (log, count) = log.finish().unwrap();
    let mut reader = LogReader::open(&*log).unwrap();
    let expected = events.take();
    assert_eq!(count, expected.len() as u64);
    for (serial, event) in (0..).zip(&expected) {
        let found = reader.next_event().unwrap().unwrap();
        assert_eq!(found, RecordedEvent { serial, ..RecordedEvent::of(event) });
    }
    assert!(reader.next_event().unwrap().is_none() && reader.next_event().unwrap().is_none());
}

/// Each word of a log, with one bit changed (design/point-log.md `.req.whole`).
#[test]
fn a_log_that_was_changed_or_cut_is_refused_at_its_event() {
    let log = PointLog::begin(Vec::new()).unwrap();
    program(&log, 2);
    let (log, events) = log.finish().unwrap();
    let refusal = |log: &[u8]| -> (u64, LogError) {
        let mut reader = match LogReader::open(log) {
            Ok(reader) => reader,
            Err(error) => return (0, error),
        };
        for event in 0.. {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("of {events} events {event} were read, and nothing was refused"),
                Err(error) => return (event, error),
            }
        }
        unreachable!()
    };
    let mut random = Random::new(3);
    for word in 0..log.len() / WORD_BYTES {
        let mut changed = log.clone();
        changed[word * WORD_BYTES + random.below(WORD_BYTES)] ^= 1 << random.below(8);
        match refusal(&changed) {
            (_, LogError::Foreign | LogError::Version { .. }) => assert!(word < 3),
            (at, LogError::Damaged { event } | LogError::Truncated { event }) => {
                assert!(at == event && word >= 3)
            }
            (_, error) => panic!("{error}"),
        }
    }
    for _ in 0..50 {
        let length = random.below(log.len());
        match refusal(&log[..length]) {
            (_, LogError::Foreign) => assert!(length < 3 * WORD_BYTES),
            (at, LogError::Truncated { event }) => assert_eq!(at, event),
            (_, error) => panic!("{length}: {error}"),
        }
    }
}

/// An output with room for that many bytes, as a disk that fills up.
struct Full {
    written: Vec<u8>,
    room: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room - self.written.len());
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// (design/point-log.md `.file.fails`)
#[test]
fn a_program_goes_on_if_its_log_fails_and_the_log_has_what_was_before() {
    let whole = PointLog::begin(Vec::new()).unwrap();
    program(&whole, 4);
    let (whole, events) = whole.finish().unwrap();
    let mut random = Random::new(5);
    for _ in 0..20 {
        let room = LOG_HEADER_WORDS * WORD_BYTES + random.below(whole.len() - LOG_HEADER_WORDS * WORD_BYTES);
        let mut full = Full { written: Vec::new(), room };
        let log = PointLog::begin(&mut full).unwrap();
        program(&log, 4);
        let errors = [log.end(), log.end(), log.finish().map(|(_, events)| events)];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!(full.written.len(), room, "nothing was written after the error, nor left out before");
        let mut reader = LogReader::open(&*full.written).unwrap();
        let found = (0..=events).find_map(|event| reader.next_event().err().map(|error| (event, error)));
        let Some((at, LogError::Truncated { event })) = found else { panic!("{room}: {found:?}") };
        assert_eq!(at, event);
    }
}

/// As the log of an arena has to, that keeps its hook forever (design/point-log.md `.file.end`).
#[test]
fn a_log_that_is_shared_ends_and_keeps_nothing_more() {
    let log = PointLog::begin(Vec::new()).unwrap();
    let shared = &log;
    shared.event(Event::Grow { size: 1 });
    assert_eq!(shared.end().unwrap(), 1);
    shared.event(Event::Grow { size: 2 });
    assert_eq!(shared.end().unwrap(), 1, "it ends once");
    let (bytes, events) = log.finish().unwrap();
    let mut reader = LogReader::open(&*bytes).unwrap();
    assert!(matches!(reader.next_event().unwrap().unwrap().fields, Fields::Grow { size: 1, .. }));
    assert!(reader.next_event().unwrap().is_none() && events == 1);
}

/// (design/point-log.md `.req.order`, `.order.lock`)
#[test]
fn no_call_is_made_in_the_middle_of_another() {
    let log = PointLog::begin(Vec::new()).unwrap();
    let rounds = if cfg!(miri) { 10 } else { 500 };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for size in 0..rounds {
                    log.call(|| {
                        log.event(Event::Grow { size });
                        // A call inside a call is no end of it.
                        log.call(|| log.event(Event::Grow { size }));
                        std::thread::yield_now();
                        log.event(Event::Shrink { size });
                    });
                }
            });
        }
    });
    let (log, events) = log.finish().unwrap();
    assert_eq!(events, 4 * 3 * rounds as u64);
    let mut reader = LogReader::open(&*log).unwrap();
    while let Some(first) = reader.next_event().unwrap() {
        let [second, third] = [(); 2].map(|()| reader.next_event().unwrap().unwrap());
        let Fields::Grow { size: grown, .. } = first.fields else { panic!("{first}") };
        assert!(matches!(third.fields, Fields::Shrink { size, .. } if size == grown), "{first}, {third}");
        assert!(
            [second, third].iter().all(|event| event.thread == first.thread),
            "{first}, {second}, {third}"
        );
    }
}

/// Unwinds at the events that it is made for.
struct Unwinds(fn(&Event) -> bool);

impl EventHook for Unwinds {
    fn event(&self, event: Event) {
        if (self.0)(&event) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
}

/// If a call unwinds, calls of other threads are made nevertheless (design/point-log.md `.order.unwound`).
#[test]
fn a_call_that_unwinds_is_over() {
    const KINDS: [fn(&Event) -> bool; 6] = [
        |event| matches!(event, Event::Reserve { .. }),
        |event| matches!(event, Event::RefuseReserve { .. }),
        |event| matches!(event, Event::FreeAtPoint { .. }),
        |event| matches!(event, Event::EmptyPoint { .. }),
        |event| matches!(event, Event::PushFrame { .. }),
        |event| matches!(event, Event::PopFrame { .. }),
    ];
    let log: &'static PointLog<_> = Box::leak(Box::new(PointLog::begin(std::io::sink()).unwrap()));
    let mut memory = Box::new_uninit_slice(ARENA);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let stack = Snc::create(&arena, SncOptions::default()).unwrap();
    for kind in KINDS {
        let hook = || (log, Unwinds(kind));
        let unwound = Cell::new(0);
        let attempt = |call: &mut dyn FnMut()| {
            let unwinds = std::panic::catch_unwind(AssertUnwindSafe(call)).is_err();
            unwound.set(unwound.get() + usize::from(unwinds));
            in_time(|| log.call(|| ()));
        };
        let logger = || PointLogger::new(|| true, hook());
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, logger()).unwrap();
        let mut frames = AllocationPoint::create_with(&stack, BufferKind::Mutator, logger()).unwrap();
        let mut kept = pool.alloc(layout(8, 8)).ok();
        attempt(&mut || _ = point.alloc(1_u64));
        attempt(&mut || _ = point.reserve(layout(2 * ARENA, 8)).is_err());
        // SAFETY: allocated in this pool with this layout, freed once, and not used any more.
        attempt(&mut || unsafe { point.free(kept.take().unwrap(), layout(8, 8)) });
        attempt(&mut || point.empty());
        attempt(&mut || frames.scope(|_| ()));
        assert_ne!(unwound.get(), 0);
    }
}

/// The memory of an object that is logged is that of the pool (design/point-log.md `.what.pool`).
#[test]
fn a_logged_pool_is_the_pool_that_it_has() {
    let mut memory = Box::new_uninit_slice(ARENA);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let events = Events::default();
    let pool = LoggedPool::new(Mvff::create(&arena, MvffOptions::default()).unwrap(), || false, &events);
    let object = pool.alloc(layout(100, 8)).unwrap();
    assert_eq!(pool.sizes(), pool.pool().sizes());
    assert_eq!(arena.pool_of(Addr::of(object.as_ptr())), Some(pool.header().id()));
    // SAFETY: allocated in this pool with this layout, freed once, and not used any more.
    unsafe { pool.free(object, layout(100, 8)) };
    assert_eq!((pool.sizes().free, events.take()), (pool.sizes().total, vec![]), "the log is off");
}

/// A depot of a logged pool has no slabs, so the log has each object and not the slabs.
#[test]
fn what_a_depot_allocates_is_logged_by_object() {
    let mut memory = Box::new_uninit_slice(ARENA);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let events = Events::default();
    let pool = LoggedPool::new(Mvff::create(&arena, MvffOptions::default()).unwrap(), || true, &events);
    let classes = CacheClasses::new(&[CacheClass { size: 96, count: 8 }]).unwrap();
    let depot = Depot::with_slabs(&pool, classes, 4096);
    events.take();
    let object = depot.alloc(layout(90, 8)).unwrap();
    let logged = events.take();
    assert!(logged.iter().any(|event| matches!(event, Event::Alloc { size: 96, .. })), "{logged:?}");
    // SAFETY: allocated by this depot with this layout, freed once, and not used any more.
    unsafe { depot.free(object, layout(90, 8)) };
    assert!(matches!(events.take()[..], [Event::Free { size: 96, .. }]));
}
