//! Every transition of the diagram in the crate's documentation, by number.

mod common;

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

use common::{
    BumpPool, Draws, FlipPool, Form, MIN_ALIGN, TestControl, TestPool, Told, Unformatted, addr, flip_buffer,
    with_arena, with_events,
};
use tripoint_ap::{
    AllocationPoint, Buffer, BufferMode, CommitFailed, Control, Stop, Tripper, flip_buffers, for_each_buffer,
};
use tripoint_core::words::INLINE_SIZE_MAX;
use tripoint_core::{
    Addr, AddrRange, Arena, BarrierPair, BufferClass, BufferKind, Check, CheckLevel, Describe, Error, Event,
    ManualPool, PoolBox, PoolClass, RankSet, Segment, SegmentBuffer, SymmetricFence,
};

const ARENA: usize = 1 << 20;
const FILL: usize = 4096;
const OBJECT: Layout = Layout::new::<[u64; 4]>();

fn with_bump<R>(test: impl FnOnce(&BumpPool<'_>) -> R) -> R {
    with_arena(ARENA, |arena| test(&BumpPool::create(arena, FILL)))
}

fn with_flip<R>(test: impl FnOnce(&FlipPool<'_>) -> R) -> R {
    with_arena(ARENA, |arena| test(&FlipPool::create(arena, FILL, SymmetricFence)))
}

/// An allocation point that remembers what it was told.
fn listening<'p, 'a, F: Form>(
    pool: &'p TestPool<'a, F>,
    draws: Draws,
) -> AllocationPoint<'p, TestPool<'a, F>, TestControl> {
    AllocationPoint::create_with(pool, BufferKind::Mutator, TestControl::new(draws)).unwrap()
}

/// Reserves and commits a whole object of zeros: where it is, or that it failed.
fn allocate<P: PoolClass, C: Control>(
    point: &mut AllocationPoint<'_, P, C>,
    layout: Layout,
) -> Result<NonNull<u8>, CommitFailed> {
    allocate_through(point, layout, || {})
}

/// The same, and something happens between reserve and commit.
fn allocate_through<P: PoolClass, C: Control>(
    point: &mut AllocationPoint<'_, P, C>,
    layout: Layout,
    between: impl FnOnce(),
) -> Result<NonNull<u8>, CommitFailed> {
    let Ok(reservation) = point.reserve(layout) else { panic!("refused") };
    // SAFETY: the reservation is valid for writes of its size.
    unsafe { reservation.as_ptr().write_bytes(0, reservation.size()) };
    between();
    // SAFETY: the object was just written whole.
    unsafe { reservation.commit() }
}

fn refusal<P: PoolClass, C: Control>(point: &mut AllocationPoint<'_, P, C>, layout: Layout) -> Error {
    match point.reserve(layout) {
        Ok(_) => panic!("not refused"),
        Err(error) => error,
    }
}

fn flip<F: Form>(pool: &TestPool<'_, F>) {
    flip_buffers(pool, |_| {});
}

fn mode<P: PoolClass, C: Control>(point: &AllocationPoint<'_, P, C>) -> BufferMode {
    point.buffer().snapshot().unwrap().mode
}

const RESET: BufferMode = BufferMode::empty();
const READY: BufferMode = BufferMode::ATTACHED;
const TRAPPED: BufferMode = BufferMode::ATTACHED.union(BufferMode::TRAPPED);
const FLIPPED: BufferMode = TRAPPED.union(BufferMode::FLIPPED);

#[test]
fn created_reset() {
    with_bump(|pool| {
        let point = AllocationPoint::create(pool).unwrap();
        assert_eq!((mode(&point), point.room(), point.is_reset()), (RESET, 0, true));
        let now = point.buffer().snapshot().unwrap();
        assert_eq!((now.range().size(), now.init, now.limit), (0, Addr::ZERO, Addr::ZERO));
        assert!(pool.fills().is_empty());
        point.check(CheckLevel::Deep).unwrap();
    });
}

// Transition 1.
#[test]
fn reserving_while_reset_fills() {
    with_events(|arena, events| {
        let pool = BumpPool::create(arena, FILL);
        let mut point = AllocationPoint::create(&pool).unwrap();
        events.take();
        let reservation = point.reserve(OBJECT).unwrap();
        assert_eq!(pool.fills()[0].base(), addr(reservation.as_ptr()));
        drop(reservation);
        assert_eq!((mode(&point), point.room(), point.is_reset()), (READY, FILL, false));
        assert_eq!(events.take(), [Event::Fill { pool: pool.header().id(), size: FILL }]);
        assert_eq!(arena.counts().fills.get(), 1);
    });
}

// Transitions 2 and 4.
#[test]
fn the_fast_path_calls_nobody() {
    with_events(|arena, events| {
        let pool = FlipPool::create(arena, FILL, SymmetricFence);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let first = allocate(&mut point, OBJECT).unwrap();
        events.take();
        pool.fail_fills(Some(Error::Memory));
        for index in 1..FILL / OBJECT.size() {
            let object = allocate(&mut point, OBJECT).unwrap();
            assert_eq!(addr(object).get() - addr(first).get(), index * OBJECT.size());
        }
        assert_eq!((events.take(), point.room(), mode(&point)), (vec![], 0, READY));
        assert_eq!(refusal(&mut point, OBJECT), Error::Memory);
    });
}

// Transition 3.
#[test]
fn dropping_a_reservation_abandons_it() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let abandoned = point.reserve(OBJECT).unwrap().as_ptr();
        assert_eq!(point.room(), FILL);
        assert_eq!(allocate(&mut point, OBJECT), Ok(abandoned));
        assert_eq!(point.room(), FILL - OBJECT.size());
    });
}

// Transitions 5 and 8, by a trip.
#[test]
fn a_trip_while_ready_is_heard_at_the_next_reserve() {
    with_events(|arena, events| {
        let pool = BumpPool::create(arena, FILL);
        let mut point = listening(&pool, Draws::Never);
        let first = allocate(&mut point, OBJECT).unwrap();
        events.take();
        (0..3).for_each(|_| point.tripper().trip());
        assert_eq!((mode(&point), point.control().trips()), (TRAPPED, 0));
        let second = point.reserve(OBJECT).unwrap().as_ptr();
        assert_eq!(addr(second).get(), addr(first).get() + OBJECT.size());
        assert_eq!((mode(&point), point.control().told.clone()), (READY, vec![Told::Tripped(3)]));
        assert_eq!(arena.counts().trips.get(), 3);
        assert_eq!(events.take(), [Event::Trip { pool: pool.header().id() }]);
    });
}

#[test]
fn a_trip_while_reset_is_heard_at_the_next_reserve() {
    with_bump(|pool| {
        let mut point = listening(pool, Draws::Never);
        point.tripper().trip();
        assert_eq!(mode(&point), RESET);
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(point.control().told, [Told::Tripped(1)]);
    });
}

/// Trips are heard where the reserve is refused too.
#[test]
fn a_refused_reserve_hears_of_trips() {
    with_bump(|pool| {
        let mut point = listening(pool, Draws::Never);
        pool.fail_fills(Some(Error::Frozen));
        point.tripper().trip();
        assert_eq!(refusal(&mut point, OBJECT), Error::Frozen);
        assert_eq!(point.control().trips(), 1);
    });
}

// Transitions 5 and 6, by a trip; 8 comes later.
#[test]
fn a_commit_stands_through_a_trip() {
    fn test<F: Form>(pool: &TestPool<'_, F>) {
        let mut point = listening(pool, Draws::Never);
        let tripper = point.tripper();
        allocate_through(&mut point, OBJECT, || tripper.trip()).unwrap();
        assert_eq!((mode(&point), point.room()), (TRAPPED, FILL - OBJECT.size()));
        assert_eq!(point.control().trips(), 0);
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!((mode(&point), point.control().trips()), (READY, 1));
    }
    with_bump(test);
    with_flip(test);
}

// Transitions 5 and 8, by a flip.
#[test]
fn a_flip_while_ready_sees_every_object() {
    with_events(|arena, events| {
        let pool = FlipPool::create(arena, FILL, SymmetricFence);
        let mut point = AllocationPoint::create(&pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        events.take();
        flip(&pool);
        let now = point.buffer().snapshot().unwrap();
        assert_eq!(
            (now.mode, now.scan_limit, now.init),
            (FLIPPED, now.init, now.base.checked_add(32).unwrap())
        );
        assert_eq!(
            (events.take(), arena.counts().flips.get()),
            (vec![Event::Flip { pool: pool.header().id() }], 1)
        );
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(mode(&point), READY);
        assert!(!events.take().iter().any(|event| matches!(event, Event::CommitFailed { .. })));
    });
}

// Transition 7.
#[test]
fn a_commit_that_the_flip_did_not_see_fails() {
    with_events(|arena, events| {
        let pool = FlipPool::create(arena, FILL, SymmetricFence);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let first = allocate(&mut point, OBJECT).unwrap();
        let end = addr(first).checked_add(OBJECT.size()).unwrap();
        events.take();
        assert_eq!(allocate_through(&mut point, OBJECT, || flip(&pool)), Err(CommitFailed));
        let now = point.buffer().snapshot().unwrap();
        assert_eq!((now.mode, now.init, now.scan_limit), (FLIPPED, end, end));
        let id = pool.header().id();
        assert_eq!(events.take(), [Event::Flip { pool: id }, Event::CommitFailed { pool: id }]);
        // The same memory, and this time it stands.
        assert_eq!(allocate(&mut point, OBJECT).map(addr), Ok(end));
    });
}

#[test]
fn the_first_object_of_a_buffer_can_fail() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        assert_eq!(allocate_through(&mut point, OBJECT, || flip(pool)), Err(CommitFailed));
        assert_eq!(point.room(), FILL);
    });
}

/// A second flip sees no more than the first while the owner has not gone on.
#[test]
fn two_flips_fail_one_commit() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        let twice = || (0..2).for_each(|_| flip(pool));
        assert_eq!(allocate_through(&mut point, OBJECT, twice), Err(CommitFailed));
        assert!(allocate(&mut point, OBJECT).is_ok());
    });
}

// Transition 6, by a flip that did see the object: the commit moved `init`
// before the flip looked, and `limit` was zero before the commit looked. On one
// thread that is a flip from the light barrier of commit itself.
#[test]
fn a_commit_that_the_flip_saw_stands() {
    static FLIP_IN_COMMIT: AtomicPtr<Buffer> = AtomicPtr::new(core::ptr::null_mut());

    #[derive(Clone, Copy, Debug)]
    struct FlipInCommit;

    // SAFETY: used on one thread, where program order is enough.
    unsafe impl BarrierPair for FlipInCommit {
        fn light(self) {
            let buffer = FLIP_IN_COMMIT.swap(core::ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: null, or set below to a buffer that outlives the commit.
            if let Some(buffer) = unsafe { buffer.as_ref() } {
                assert_eq!(flip_buffer(buffer, self), buffer.scan_limit());
            }
        }
        fn heavy(self) {}
    }

    with_arena(ARENA, |arena| {
        let pool = FlipPool::create(arena, FILL, FlipInCommit);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let buffer: &Buffer = point.buffer();
        let flip_in_commit =
            || FLIP_IN_COMMIT.store(core::ptr::from_ref(buffer).cast_mut(), Ordering::Relaxed);
        let object = allocate_through(&mut point, OBJECT, flip_in_commit).unwrap();
        let now = buffer.snapshot().unwrap();
        let end = addr(object).checked_add(OBJECT.size()).unwrap();
        assert_eq!((now.mode, now.scan_limit, now.init), (FLIPPED, end, end));
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(mode(&point), READY);
    });
}

#[test]
fn flipping_a_reset_buffer_harms_nothing() {
    with_flip(|pool| {
        let mut point = listening(pool, Draws::Never);
        flip(pool);
        assert_eq!((mode(&point), pool.header().arena().counts().flips.get()), (RESET, 0));
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(point.control().trips(), 1);
    });
}

#[test]
fn manual_pools_are_not_flipped() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let visits = Cell::new(0);
        let flips = || {
            flip_buffers(pool, |_| visits.set(visits.get() + 1));
        };
        allocate_through(&mut point, OBJECT, flips).unwrap();
        let buffer = point.buffer();
        assert_eq!((flip_buffer(buffer, SymmetricFence), visits.get()), (buffer.scan_limit(), 0));
        assert_eq!(mode(&point), READY);
    });
}

/// Counts its drops. Eight bytes on every target.
#[repr(align(8))]
struct Counted<'c>(&'c Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn alloc_with_makes_again_what_failed() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let (made, dropped) = (Cell::new(0), Cell::new(0));
        let object = point.make_with(|| {
            made.set(made.get() + 1);
            if made.get() <= 3 {
                flip(pool);
            }
            (made.get(), Counted(&dropped))
        });
        // SAFETY: the object was committed, and its pool lives.
        let serial = unsafe { object.unwrap().as_ref() }.0;
        assert_eq!((made.get(), dropped.get(), serial), (4, 3, 4));
        assert_eq!(FILL - point.room(), size_of::<(u32, Counted<'_>)>().next_multiple_of(MIN_ALIGN));
    });
}

/// What is made but cannot be is not kept: a panic abandons the reservation.
#[test]
fn a_panic_while_making_abandons() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        let make = || -> u64 { std::panic::resume_unwind(Box::new(())) };
        let result =
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| point.make_with(make).is_ok()));
        assert!(result.is_err());
        assert_eq!(point.room(), FILL - OBJECT.size());
        allocate(&mut point, OBJECT).unwrap();
    });
}

// Transition 9.
#[test]
fn emptying_gives_back_the_rest() {
    with_events(|arena, events| {
        let pool = BumpPool::create(arena, FILL);
        let mut point = AllocationPoint::create(&pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        events.take();
        point.empty();
        assert_eq!((mode(&point), point.room(), pool.fills().len()), (RESET, 0, 0));
        let unused = FILL - OBJECT.size();
        assert_eq!(events.take(), [Event::Empty { pool: pool.header().id(), size: unused }]);
        assert_eq!(point.buffer().empty_size(), unused as u64);
        point.empty();
        assert_eq!(events.take(), []);
        allocate(&mut point, OBJECT).unwrap();
    });
}

/// Empties a trapped and flipped buffer: nothing of it is left in the next fill.
#[test]
fn emptying_a_flipped_buffer_ends_the_flip() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        flip(pool);
        point.empty();
        assert_eq!(mode(&point), RESET);
        assert!(allocate(&mut point, OBJECT).is_ok());
    });
}

#[test]
fn dropping_gives_back_the_rest() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        let buffer = point.buffer();
        drop(point);
        assert!(pool.fills().is_empty());
        assert_eq!(buffer.fill_size() - buffer.empty_size(), OBJECT.size() as u64);
        pool.check(CheckLevel::Deep).unwrap();
    });
}

// Transition 10.
#[test]
fn a_refused_fill_resets_and_leaves_usable() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        for error in [Error::Memory, Error::Limit, Error::CommitLimit, Error::Frozen, Error::Parameter("no")]
        {
            pool.fail_fills(Some(error));
            let large = Layout::from_size_align(FILL, 8).unwrap();
            assert_eq!(refusal(&mut point, large), error);
            assert_eq!((mode(&point), pool.fills().len()), (RESET, 0));
            assert_eq!(refusal(&mut point, OBJECT), error);
            pool.fail_fills(None);
            allocate(&mut point, OBJECT).unwrap();
        }
    });
}

#[test]
fn an_arena_used_up_is_refused_and_stays_so_until_freed() {
    with_arena(64 << 10, |arena| {
        let pool = BumpPool::create(arena, FILL);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let half = [0_u8; 40 << 10];
        let first = point.boxed(half).unwrap();
        assert_eq!(point.boxed(half).map(drop), Err(Error::Limit));
        drop(first);
        point.boxed(half).unwrap();
    });
}

#[test]
fn a_full_buffer_goes_on_in_the_next() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let whole = Layout::from_size_align(FILL, 8).unwrap();
        for _ in 0..10 {
            allocate(&mut point, whole).unwrap();
            assert_eq!(point.room(), 0);
        }
        assert_eq!(point.buffer().fill_size(), 10 * FILL as u64);
    });
}

// The layouts a reserve may be asked for.

#[test]
fn unserved_layouts_are_refused_and_change_nothing() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        let before = point.buffer().snapshot();
        for (size, align) in [(common::SIZE_MAX + 1, 1), (isize::MAX as usize, 1), (1, 2 * common::ALIGN_MAX)]
        {
            let layout = Layout::from_size_align(size, align).unwrap();
            assert!(matches!(refusal(&mut point, layout), Error::Parameter(_)));
        }
        assert_eq!(point.buffer().snapshot(), before);
    });
}

#[test]
fn sizes_above_the_inlined_path_are_served() {
    with_arena(24 << 20, |arena| {
        let pool = FlipPool::create(arena, FILL, SymmetricFence);
        let mut point = AllocationPoint::create(&pool).unwrap();
        for size in [INLINE_SIZE_MAX, INLINE_SIZE_MAX + 16, common::SIZE_MAX] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            allocate(&mut point, layout).unwrap();
            assert_eq!(allocate_through(&mut point, layout, || flip(&pool)), Err(CommitFailed));
        }
    });
}

#[test]
fn every_alignment_is_kept() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        for log in 0..=common::ALIGN_MAX.ilog2() {
            // Something small before, so that the place is mostly not aligned.
            point.alloc(0_u8).unwrap();
            let layout = Layout::from_size_align(24, 1 << log).unwrap();
            let object = allocate(&mut point, layout).unwrap();
            assert!(addr(object).get().is_multiple_of(1 << log));
        }
    });
}

#[test]
fn types_without_size_take_no_memory() {
    #[derive(Debug)]
    #[repr(align(256))]
    struct Nothing;
    with_bump(|pool| {
        pool.fail_fills(Some(Error::Memory));
        let mut point = AllocationPoint::create(pool).unwrap();
        assert!(addr(NonNull::from(point.alloc(Nothing).unwrap())).get().is_multiple_of(256));
        point.boxed(Nothing).unwrap();
        let mut batch = point.batch::<Nothing>(3).unwrap();
        assert!((0..3).all(|_| batch.push(Nothing).is_ok()) && batch.push(Nothing).is_err());
        assert_eq!(batch.commit().len(), 3);
        assert!(point.is_reset());
    });
}

#[test]
fn layouts_without_size_get_the_smallest_object() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let nothing = Layout::new::<()>();
        let (first, second) =
            (allocate(&mut point, nothing).unwrap(), allocate(&mut point, nothing).unwrap());
        assert_eq!(addr(second).get() - addr(first).get(), MIN_ALIGN);
    });
}

#[test]
fn preallocated_memory_is_left_alone_and_not_counted() {
    with_bump(|pool| {
        pool.preallocate(256);
        let counts = pool.header().arena().counts();
        let mut point = AllocationPoint::create(pool).unwrap();
        let object = allocate(&mut point, OBJECT).unwrap();
        let now = point.buffer().snapshot().unwrap();
        assert_eq!(addr(object).get() - now.base.get(), 256);
        assert_eq!(point.buffer().fill_size() as usize, now.range().size() - 256);
        point.empty();
        assert_eq!(counts.alloc_mutator.get(), OBJECT.size() as u64);
        assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), OBJECT.size() as u64);
    });
}

// Typed forms.

#[test]
fn objects_live_as_long_as_the_pool() {
    with_bump(|pool| {
        let dropped = Cell::new(0);
        let (object, boxed) = {
            let mut point = AllocationPoint::create(pool).unwrap();
            (
                point.alloc((7_u64, Counted(&dropped))).unwrap(),
                point.boxed((8_u64, Counted(&dropped))).unwrap(),
            )
        };
        assert_eq!((object.0, boxed.0, dropped.get()), (7, 8, 0));
        drop(boxed);
        assert_eq!(dropped.get(), 1);
    });
}

#[test]
fn refused_values_are_dropped() {
    with_bump(|pool| {
        pool.fail_fills(Some(Error::Memory));
        let dropped = Cell::new(0);
        let mut point = AllocationPoint::create(pool).unwrap();
        assert!(point.alloc(Counted(&dropped)).is_err());
        assert!(point.boxed(Counted(&dropped)).is_err());
        assert!(point.make_with(|| Counted(&dropped)).is_err());
        assert_eq!(dropped.get(), 2, "the last was never made");
    });
}

#[test]
fn a_batch_commits_what_was_pushed() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let mut batch = point.batch(10).unwrap();
        assert_eq!((batch.capacity(), batch.len(), batch.is_empty()), (10, 0, true));
        (0..3_u64).for_each(|value| batch.push([value; 2]).unwrap());
        assert_eq!((batch.capacity(), batch.len(), batch.is_empty()), (10, 3, false));
        assert_eq!(batch.as_slice(), [[0; 2], [1; 2], [2; 2]]);
        assert_eq!(batch.commit(), [[0; 2], [1; 2], [2; 2]]);
        assert_eq!(point.room(), FILL - 48);
    });
}

#[test]
fn an_abandoned_batch_drops_what_was_pushed() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let dropped = Cell::new(0);
        let mut batch = point.batch(2).unwrap();
        assert!((0..3).map(|_| batch.push(Counted(&dropped)).is_ok()).eq([true, true, false]));
        assert_eq!(dropped.get(), 1, "the third came back");
        drop(batch);
        assert_eq!((dropped.get(), point.room()), (3, FILL));
    });
}

#[test]
fn a_boxed_batch_drops_and_frees_each_once() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let dropped = Cell::new(0);
        let mut batch = point.batch(8).unwrap();
        assert!((0..5).all(|_| batch.push(Counted(&dropped)).is_ok()));
        let boxed: PoolBox<'_, [Counted<'_>], _> = batch.commit_boxed();
        let free = pool.sizes().free;
        assert_eq!((boxed.len(), dropped.get()), (5, 0));
        drop(boxed);
        assert_eq!((dropped.get(), pool.sizes().free), (5, free + 48));
    });
}

#[test]
fn a_batch_that_fails_drops_what_was_pushed() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let dropped = Cell::new(0);
        let mut batch = point.batch(4).unwrap();
        assert!(batch.push((1_u64, Counted(&dropped))).is_ok());
        flip(pool);
        // SAFETY: the objects have no format.
        assert_eq!(unsafe { batch.commit_raw() }.map(drop), Err(CommitFailed));
        assert_eq!((dropped.get(), point.room()), (1, FILL));
    });
}

#[test]
fn batches_of_flippable_pools_have_no_gaps() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        assert!(matches!(point.batch::<u64>(4).map(drop), Err(Error::Parameter(_))));
        assert!(matches!(point.batch::<u64>(usize::MAX).map(drop), Err(Error::Parameter(_))));
    });
}

// Stops.

#[test]
fn a_stop_is_told_after_its_commit() {
    fn test<F: Form>(pool: &TestPool<'_, F>) {
        let mut point = listening(pool, Draws::Every(40));
        let first = allocate(&mut point, OBJECT).unwrap();
        assert_eq!(mode(&point), READY | BufferMode::STOPPED);
        let object = addr(allocate(&mut point, OBJECT).unwrap());
        assert_eq!(object.get() - addr(first).get(), 32);
        assert_eq!(point.control().told, [], "not told before the next slow path");
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(point.control().told, [Told::Stopped(Stop { object, size: 32, offset: 8 })]);
    }
    with_bump(test);
    with_flip(test);
}

#[test]
fn a_stop_abandoned_or_failed_is_not_told() {
    with_flip(|pool| {
        let mut point = listening(pool, Draws::Every(0));
        drop(point.reserve(OBJECT).unwrap());
        assert!(allocate_through(&mut point, OBJECT, || flip(pool)).is_err());
        let object = addr(allocate(&mut point, OBJECT).unwrap());
        point.empty();
        assert_eq!(point.control().stops(), [Stop { object, size: 32, offset: 0 }]);
    });
}

#[test]
fn a_stop_of_a_batch_is_told_only_if_its_byte_was_committed() {
    with_bump(|pool| {
        let mut point = listening(pool, Draws::Every(100));
        for (pushed, told) in [(6, 0), (7, 1)] {
            let mut batch = point.batch::<[u64; 2]>(10).unwrap();
            (0..pushed).for_each(|_| batch.push([0; 2]).unwrap());
            assert_eq!(batch.commit().len(), pushed);
            point.empty();
            assert_eq!(point.control().stops().len(), told);
        }
        let stop = point.control().stops()[0];
        assert_eq!((stop.size, stop.offset), (7 * 16, 100));
    });
}

#[test]
fn dropping_tells_the_last_stop() {
    #[derive(Debug)]
    struct Shared<'s>(&'s Cell<usize>);
    impl Control for Shared<'_> {
        fn next_stop(&mut self) -> usize {
            0
        }
        fn stopped(&mut self, _: Stop) {
            self.0.set(self.0.get() + 1);
        }
    }
    with_bump(|pool| {
        let told = Cell::new(0);
        let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, Shared(&told)).unwrap();
        point.alloc(0_u64).unwrap();
        drop(point);
        assert_eq!(told.get(), 1);
    });
}

/// The slow path decides trips, then stops, then a full buffer.
#[test]
fn trips_are_told_before_stops() {
    with_bump(|pool| {
        let mut point = listening(pool, Draws::Every(0));
        let object = addr(allocate(&mut point, OBJECT).unwrap());
        point.tripper().trip();
        allocate(&mut point, OBJECT).unwrap();
        let stop = Stop { object, size: 32, offset: 0 };
        assert_eq!(point.control().told, [Told::Tripped(1), Told::Stopped(stop)]);
    });
}

// Descriptors, and who else holds them.

#[test]
fn descriptors_are_used_again() {
    with_bump(|pool| {
        let control = || pool.header().arena().sizes().control;
        let first = AllocationPoint::create(pool).unwrap();
        let (buffer, before) = (first.buffer(), control());
        drop(first);
        for kind in [BufferKind::Internal, BufferKind::Mutator] {
            let mut point = AllocationPoint::create_with(pool, kind, ()).unwrap();
            assert!(core::ptr::eq(point.buffer(), buffer));
            assert_eq!((buffer.kind(), buffer.fill_size(), buffer.empty_size()), (kind, 0, 0));
            allocate(&mut point, OBJECT).unwrap();
        }
        assert_eq!(control(), before);
        let both = (AllocationPoint::create(pool).unwrap(), AllocationPoint::create(pool).unwrap());
        assert!(!core::ptr::eq(both.0.buffer(), both.1.buffer()));
    });
}

#[test]
fn only_claimed_buffers_are_visited() {
    with_flip(|pool| {
        let visits = || {
            let mut visits = Vec::new();
            for_each_buffer(pool, |buffer| visits.push(core::ptr::from_ref(buffer)));
            visits
        };
        let first = AllocationPoint::create(pool).unwrap();
        let second = AllocationPoint::create(pool).unwrap();
        let both: Vec<_> = [second.buffer(), first.buffer()].map(core::ptr::from_ref).into();
        assert_eq!(visits(), both);
        drop(second);
        assert_eq!(visits(), both[1..]);
    });
}

#[test]
fn a_tripper_outlives_its_point() {
    with_bump(|pool| {
        let tripper = listening(pool, Draws::Never).tripper();
        tripper.trip();
        let mut successor = listening(pool, Draws::Never);
        let buffer: &Buffer = successor.buffer();
        assert!(core::ptr::eq(buffer, tripper.buffer()));
        allocate(&mut successor, OBJECT).unwrap();
        assert_eq!(successor.control().trips(), 0, "that trip was its predecessor's");
        tripper.trip();
        allocate(&mut successor, OBJECT).unwrap();
        assert_eq!(successor.control().trips(), 1);
    });
}

#[test]
fn create_fails_where_the_arena_is_full() {
    with_arena(32 << 10, |arena| {
        let pool = BumpPool::create(arena, FILL);
        let mut points = Vec::new();
        let error = loop {
            match AllocationPoint::create(&pool) {
                Ok(point) => points.push(point),
                Err(error) => break error,
            }
        };
        assert_eq!(error, Error::Limit);
        assert!(points.len() > 10);
        points.pop();
        AllocationPoint::create(&pool).unwrap();
    });
}

#[test]
fn a_point_moves_between_threads() {
    with_flip(|pool| {
        let mut point = listening(pool, Draws::Never);
        let first = addr(allocate(&mut point, OBJECT).unwrap());
        let tripper: Tripper<'_> = point.tripper();
        let mut point = thread::scope(|scope| {
            scope
                .spawn(move || {
                    tripper.trip();
                    let second = addr(allocate(&mut point, OBJECT).unwrap());
                    assert_eq!(second.get(), first.get() + 32);
                    point
                })
                .join()
                .unwrap()
        });
        assert_eq!((point.control().trips(), point.room()), (1, FILL - 64));
    });
}

static EXACT: Segment = Segment::new(NOWHERE, RankSet::EXACT);
static WEAK: Segment = Segment::new(NOWHERE, RankSet::WEAK);
const NOWHERE: AddrRange = AddrRange::new(Addr::ZERO, Addr::ZERO).unwrap();

#[test]
fn a_fill_of_other_ranks_is_refused_and_given_back() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        pool.fill_from(&EXACT);
        allocate(&mut point, OBJECT).unwrap();
        assert!(point.buffer().class().segment().is_some());
        point.empty();
        assert_eq!(point.buffer().class().segment(), None);
        pool.preallocate(64);
        pool.fill_from(&WEAK);
        assert!(matches!(refusal(&mut point, OBJECT), Error::Parameter(_)));
        assert_eq!((mode(&point), pool.fills().len()), (RESET, 0));
        assert_eq!(point.buffer().fill_size() - point.buffer().empty_size(), OBJECT.size() as u64);
        pool.fill_from(&EXACT);
        allocate(&mut point, OBJECT).unwrap();
    });
}

#[test]
fn ranks_change_for_fills_from_now_on() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        point.buffer().class().set_rank_set(RankSet::WEAK);
        point.empty();
        pool.fill_from(&WEAK);
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(point.buffer().rank_set(), RankSet::WEAK);
    });
}

/// A descriptor left by one kind of allocation point serves another.
#[test]
fn descriptors_serve_other_controls_of_their_size() {
    #[derive(Debug)]
    struct OneWord(#[expect(dead_code)] usize);
    impl Control for OneWord {}
    #[derive(Debug)]
    struct AnotherWord(Cell<usize>);
    impl Control for AnotherWord {}
    #[derive(Debug)]
    struct Large(#[expect(dead_code)] [usize; 16]);
    impl Control for Large {}
    with_bump(|pool| {
        let first = AllocationPoint::create_with(pool, BufferKind::Mutator, OneWord(1)).unwrap();
        let buffer = first.buffer();
        drop(first);
        let mut second =
            AllocationPoint::create_with(pool, BufferKind::Mutator, AnotherWord(Cell::new(2))).unwrap();
        assert!(core::ptr::eq(buffer, second.buffer()));
        assert_eq!(second.control().0.get(), 2);
    });
    with_bump(|pool| {
        let small = AllocationPoint::create(pool).unwrap();
        let buffer = small.buffer();
        drop(small);
        let large = AllocationPoint::create_with(pool, BufferKind::Mutator, Large([0; 16])).unwrap();
        assert!(!core::ptr::eq(buffer, large.buffer()), "it would not fit");
    });
}

#[test]
fn a_descriptor_takes_on_the_ranks_of_its_next_buffer() {
    with_flip(|pool| {
        drop(AllocationPoint::create(pool).unwrap());
        let class = SegmentBuffer::new(RankSet::WEAK);
        let point = AllocationPoint::create_in(pool, BufferKind::Mutator, (), class).unwrap();
        assert_eq!(
            (point.buffer().class().rank_set(), point.buffer().rank_set()),
            (RankSet::WEAK, RankSet::WEAK)
        );
    });
}

#[test]
fn dropping_drops_the_control() {
    #[derive(Debug)]
    struct Dropped<'d>(&'d Cell<u32>);
    impl Control for Dropped<'_> {}
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    with_bump(|pool| {
        let dropped = Cell::new(0);
        for count in 1..4 {
            drop(AllocationPoint::create_with(pool, BufferKind::Mutator, Dropped(&dropped)).unwrap());
            assert_eq!(dropped.get(), count);
        }
    });
}

#[test]
fn a_deep_check_of_a_point_looks_at_its_pool() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let object = allocate(&mut point, OBJECT).unwrap();
        point.check(CheckLevel::Deep).unwrap();
        // SAFETY: allocated above, freed once. Test pools take an object that is freed
        // within a fill that is out for damage.
        unsafe { pool.free(object, OBJECT) };
        assert!(pool.check(CheckLevel::Deep).is_err());
        assert!(point.check(CheckLevel::Deep).is_err());
        point.check(CheckLevel::Shallow).unwrap();
    });
}

#[test]
fn a_point_describes_its_buffer_and_its_pool() {
    with_bump(|pool| {
        let point = AllocationPoint::create(pool).unwrap();
        assert_eq!(format!("{point:?}"), format!("AllocationPoint({:?})", point.buffer().snapshot()));
        let (mut text, mut buffer, mut header) = (String::new(), String::new(), String::new());
        point.describe(&mut text, 1).unwrap();
        point.buffer().describe(&mut buffer, 1).unwrap();
        pool.header().describe(&mut header, 2).unwrap();
        assert_eq!(text, buffer + &header);
    });
}

#[test]
fn checks_and_descriptions_say_what_is_there() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        flip(pool);
        for level in [CheckLevel::Cheap, CheckLevel::Shallow, CheckLevel::Deep] {
            point.check(level).unwrap();
        }
        let mut text = String::new();
        point.describe(&mut text, 0).unwrap();
        for expected in ["Mutator", "TRAPPED", "FLIPPED", "4096 bytes"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(CommitFailed.to_string().contains("reserve again"));
    });
}
