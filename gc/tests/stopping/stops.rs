//! Heaps that are stopped while threads allocate, poll, and are away (design/gc.md).

use core::alloc::Layout;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};
use std::thread;

use crate::common::{Arena, Raise, TestHeap, Yield};
use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Block, BufferKind, Check, CheckError, CheckLevel, ClientArena, ClientArenaOptions, Describe, Error, Fill,
    GivesWay, KeepsInBuffer, OwnBuffer, Parking, PoolClass, PoolHeader, PoolSizes, RankSet, Result,
    SymmetricFence,
};
use tripoint_gc::{Heap, HeapOptions, Mutator, MutatorBuffer, Postponed};
use tripoint_oracle::Party;

/// The least class whose points give way. It keeps what buffers return until it is dropped.
#[derive(Debug)]
struct Giving<'m> {
    heap: &'m TestHeap<'m>,
    header: PoolHeader<Arena<'m>>,
}

impl KeepsInBuffer for Giving<'_> {
    type Buffer = MutatorBuffer;

    fn new_buffer(&self) -> MutatorBuffer {
        MutatorBuffer::new(RankSet::empty())
    }

    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, MutatorBuffer>, _layout: Layout) -> Result<Option<Fill>> {
        if own.pool().heap.attends(own.kept()) {
            Ok(None)
        } else {
            Err(Error::Parameter("the allocation point belongs to no mutator of the heap"))
        }
    }
}

impl GivesWay for Giving<'_> {
    const GIVES_WAY: bool = true;

    fn wants_stop(&self) -> bool {
        self.heap.wants_stop()
    }

    unsafe fn give_way(own: OwnBuffer<'_, Self, MutatorBuffer>) {
        // SAFETY: the pool has borrowed the heap since it was created; `own` is the owner's of the
        // buffer, which is reset.
        unsafe { own.pool().heap.give_way(own.kept()) };
    }
}

// SAFETY: fills are tracts, which the arena hands out once, and which are returned when the header is
// dropped; grains and sizes are multiples of 16, and so is every layout's size as it is rounded here.
unsafe impl<'m> PoolClass for Giving<'m> {
    const CLASS: &'static str = "Giving";
    const FLIPPABLE: bool = false;
    type Arena = Arena<'m>;
    type Barrier = SymmetricFence;

    fn header(&self) -> &PoolHeader<Arena<'m>> {
        &self.header
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    fn min_align(&self) -> usize {
        16
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        layout.size().max(1).checked_next_multiple_of(16).filter(|_| layout.align() <= 16)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        self.header.extend(layout.size()).map(Fill::from)
    }

    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, _visit: &mut dyn FnMut(Block)) {}

    fn sizes(&self) -> PoolSizes {
        PoolSizes::of(&self.header, 0, 0)
    }
}

impl Check for Giving<'_> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl Describe for Giving<'_> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}

/// Small grains: each stop costs a point one.
const OPTIONS: ClientArenaOptions<'_> = ClientArenaOptions { grain: Some(1 << 10), event_hook: None };

/// Runs `test` with an arena and a heap of its own.
fn with_heap(test: impl FnOnce(&TestHeap<'_>)) {
    let mut memory = Box::new_uninit_slice(4 << 20);
    let arena = ClientArena::create(&mut memory, OPTIONS).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    test(&heap);
}

/// The same with a pool.
fn with_pool(test: impl FnOnce(&TestHeap<'_>, &Giving<'_>)) {
    let mut memory = Box::new_uninit_slice(4 << 20);
    let arena = ClientArena::create(&mut memory, OPTIONS).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    let pool = Giving { heap: &heap, header: PoolHeader::create(&arena, Giving::CLASS).unwrap() };
    test(&heap, &pool);
}

fn point<'p, 'm>(
    pool: &'p Giving<'m>,
    mutator: &Mutator<'m, Arena<'m>, SymmetricFence>,
) -> AllocationPoint<'p, Giving<'m>> {
    // SAFETY: each test uses a point on the thread of its mutator, while that is running.
    let adjust = |buffer: &MutatorBuffer| unsafe { buffer.attend(mutator) };
    AllocationPoint::create_in(pool, BufferKind::Mutator, (), adjust).unwrap()
}

/// Allocates 32 bytes.
fn allocate(point: &mut AllocationPoint<'_, Giving<'_>>) {
    let reservation = point.reserve(Layout::new::<[u64; 4]>()).unwrap();
    // SAFETY: the class expects nothing of its objects.
    unsafe { reservation.commit() }.unwrap();
}

/// Says that the heap is stopped while it lives.
struct Claim<'a>(&'a AtomicBool);

impl<'a> Claim<'a> {
    fn new(is_stopped: &'a AtomicBool) -> Self {
        assert!(!is_stopped.swap(true, Ordering::SeqCst), "the heap is stopped twice at once");
        Self(is_stopped)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// How many stops a thread makes.
const STOPS: usize = if cfg!(miri) { 3 } else { 200 };

/// (design/gc.md `.req.stop`, `.req.half`)
#[test]
fn threads_that_allocate_give_way_at_their_next_reserve() {
    with_pool(|heap, pool| {
        let (is_stopped, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        let (running, half_made) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let party = Party::new();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _member = party.enter();
                    let mutator = heap.register().unwrap();
                    let mut point = point(pool, &mutator);
                    running.fetch_add(1, Ordering::SeqCst);
                    while !is_done.load(Ordering::Relaxed) {
                        // What is abandoned fills no buffer: only trips make this thread give way.
                        let reservation = point.reserve(Layout::new::<[u64; 4]>()).unwrap();
                        half_made.fetch_add(1, Ordering::SeqCst);
                        assert!(
                            !is_stopped.load(Ordering::SeqCst),
                            "a mutator runs while the heap is stopped"
                        );
                        half_made.fetch_sub(1, Ordering::SeqCst);
                        drop(reservation);
                    }
                });
            }
            let _done = Raise(&is_done);
            party.wait_until(|| running.load(Ordering::SeqCst) == 2);
            for _ in 0..STOPS {
                let stopped = heap.stop_with(Duration::MAX, || pool.header().trip_points()).unwrap();
                let claim = Claim::new(&is_stopped);
                assert_eq!(half_made.load(Ordering::SeqCst), 0, "an object is half made at a stop");
                drop(claim);
                drop(stopped);
            }
        });
        assert_eq!((heap.counts().stops.get(), heap.counts().postponed.get()), (STOPS as u64, 0));
    });
}

#[test]
fn threads_that_stop_the_heap_give_way_to_each_other() {
    with_pool(|heap, pool| {
        let is_stopped = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut mutator = heap.register().unwrap();
                    let mut point = point(pool, &mutator);
                    for _ in 0..STOPS / 3 {
                        allocate(&mut point);
                        assert!(
                            !is_stopped.load(Ordering::SeqCst),
                            "a mutator runs while the heap is stopped"
                        );
                        let stopped =
                            mutator.stop_with(Duration::MAX, || pool.header().trip_points()).unwrap();
                        drop(Claim::new(&is_stopped));
                        drop(stopped);
                        mutator.poll();
                        mutator.away(|| ());
                    }
                });
            }
        });
        assert_eq!(heap.counts().stops.get(), (STOPS / 3 * 3) as u64);
    });
}

/// (design/gc.md `.req.postpone`)
#[test]
fn a_mutator_that_does_not_give_way_is_named() {
    with_heap(|heap| {
        let [_first, mut second] = [heap.register().unwrap(), heap.register().unwrap()];
        assert_eq!(second.number(), 2);
        second.away(|| ());
        let back_at = line!() - 1;
        // The walk finds the newest first.
        let found =
            thread::scope(|scope| scope.spawn(|| heap.stop(Duration::ZERO).map(drop)).join().unwrap());
        let Err(Postponed::Late(late)) = found else { panic!("{found:?}") };
        let seen_at = late.seen_at.unwrap();
        assert_eq!((late.number, seen_at.file(), seen_at.line()), (2, file!(), back_at));
        assert!(!heap.wants_stop(), "all go on");
        second.poll();
        assert_eq!((heap.counts().stops.get(), heap.counts().postponed.get()), (0, 1));
        let text = Postponed::Late(late).to_string();
        assert!(text.starts_with("mutator 2 did not give way, which was last seen at "), "{text}");
    });
}

#[test]
fn patience_is_used_up() {
    #[derive(Debug)]
    struct Counted(AtomicUsize);

    // SAFETY: nothing is done to the word, and nothing here unwinds.
    unsafe impl Parking for Counted {
        fn wait(&self, _word: &AtomicU32, _value: u32, _patience: Duration) -> Duration {
            self.0.fetch_add(1, Ordering::Relaxed);
            Duration::from_micros(3)
        }

        fn wake(&self, _word: &AtomicU32) {}
    }

    let mut memory = Box::new_uninit_slice(64 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let parking = Counted(AtomicUsize::new(0));
    let heap =
        Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&parking) }).unwrap();
    let _running = heap.register().unwrap();
    let found = heap.stop(Duration::from_micros(10)).map(drop);
    assert!(matches!(found, Err(Postponed::Late(late)) if late.number == 1));
    assert_eq!(parking.0.load(Ordering::Relaxed), 4, "three times 3 us are less than 10 us");
}

#[test]
fn a_second_stop_waits_for_the_first() {
    with_heap(|heap| {
        let stopped = heap.stop(Duration::ZERO).unwrap();
        assert!(heap.wants_stop());
        assert_eq!(heap.stop(Duration::from_nanos(5)).map(drop), Err(Postponed::Busy));
        drop(stopped);
        drop(heap.stop(Duration::ZERO).unwrap());
        assert_eq!((heap.counts().stops.get(), heap.counts().postponed.get()), (2, 1));
    });
}

#[test]
fn a_mutator_that_is_away_or_gone_delays_no_stop() {
    with_heap(|heap| {
        let mut mutator = heap.register().unwrap();
        mutator.away(|| drop(heap.stop(Duration::ZERO).unwrap()));
        drop(mutator);
        drop(heap.stop(Duration::ZERO).unwrap());
    });
}

#[test]
fn a_mutator_comes_back_if_what_it_does_away_unwinds() {
    with_heap(|heap| {
        let mut mutator = heap.register().unwrap();
        let unwound = catch_unwind(AssertUnwindSafe(|| mutator.away(|| resume_unwind(Box::new(())))));
        assert!(unwound.is_err());
        assert!(matches!(heap.stop(Duration::ZERO).map(drop), Err(Postponed::Late(_))), "it runs again");
    });
}

#[test]
fn records_of_mutators_are_used_again() {
    with_heap(|heap| {
        let [first, second] = [heap.register().unwrap(), heap.register().unwrap()];
        assert_eq!((first.number(), second.number()), (1, 2));
        drop(first);
        let [again, third] = [heap.register().unwrap(), heap.register().unwrap()];
        assert_eq!((again.number(), third.number()), (1, 3));
    });
}

#[test]
fn a_point_that_belongs_to_no_mutator_of_the_heap_gets_no_memory() {
    with_pool(|heap, pool| {
        let layout = Layout::new::<u64>();
        let mut stray = AllocationPoint::create(pool).unwrap();
        assert!(matches!(stray.reserve(layout).map(drop), Err(Error::Parameter(_))));
        with_heap(|other| {
            // A heap of another lifetime, so the mutator is not passed to `point`.
            let mutator = other.register().unwrap();
            // SAFETY: this thread has both.
            let adjust = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
            let mut foreign = AllocationPoint::create_in(pool, BufferKind::Mutator, (), adjust).unwrap();
            assert!(matches!(foreign.reserve(layout).map(drop), Err(Error::Parameter(_))));
        });
        let mutator = heap.register().unwrap();
        // The descriptor of a point that was dropped does not keep its mutator.
        drop(point(pool, &mutator));
        let mut again = AllocationPoint::create(pool).unwrap();
        assert!(matches!(again.reserve(layout).map(drop), Err(Error::Parameter(_))));
        allocate(&mut point(pool, &mutator));
    });
}

/// What was allocated in a buffer stays, and the rest is returned.
#[test]
fn a_point_that_gave_way_goes_on_in_other_memory() {
    with_pool(|heap, pool| {
        let party = Party::new();
        thread::scope(|scope| {
            let mutator = heap.register().unwrap();
            let mut point = point(pool, &mutator);
            allocate(&mut point);
            let before = point.buffer().snapshot().unwrap();
            let stopper = scope.spawn(|| {
                let _member = party.enter();
                drop(heap.stop_with(Duration::MAX, || pool.header().trip_points()).unwrap());
            });
            // The stop lasts until this mutator gives way, which it does at a reserve.
            party.wait_until(|| {
                drop(point.reserve(Layout::new::<u64>()).unwrap());
                heap.counts().stops.get() != 0
            });
            stopper.join().unwrap();
            assert_ne!(point.buffer().snapshot().unwrap().base, before.base);
        });
    });
}
