//! Every transition of the diagram in the crate's documentation, by number.

use core::alloc::Layout;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::common::{
    ARENA, BumpPool, Counted, Draws, FILL, FLIPPED, FlipPool, Form, MIN_ALIGN, Notice, OBJECT, READY, RESET,
    TRAPPED, TestPool, Unformatted, addr, allocate, allocate_through, flip, flip_buffer, listening, mode,
    refusal, with_arena, with_bump, with_events, with_flip,
};
use tripoint_ap::internal::Owner;
use tripoint_ap::{AllocationPoint, Buffer, CommitFailed, Readiness, flip_buffers};
use tripoint_core::internal::registry_of;
use tripoint_core::{
    Addr, AddrRange, Arena, BarrierPair, BufferKind, Check, CheckLevel, Error, Event, PoolClass, RankSet,
    SymmetricFence,
};

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

#[test]
fn a_point_reports_its_life() {
    with_events(|arena, events| {
        let pool = BumpPool::create(arena, FILL);
        let id = pool.header().id();
        events.take();
        // The second point has the descriptor of the first.
        for kind in [BufferKind::Mutator, BufferKind::Internal] {
            let mut point = AllocationPoint::create_with(&pool, kind, ()).unwrap();
            let buffer = point.buffer().id();
            assert_eq!(
                events.take(),
                [Event::CreatePoint { pool: id, buffer, ranks: RankSet::empty(), kind }]
            );
            drop(point.reserve(OBJECT).unwrap());
            let base = pool.fills()[0].base();
            events.take();
            drop(point);
            let empty = Event::Empty { pool: id, buffer, base, size: FILL };
            assert_eq!(events.take(), [empty, Event::DestroyPoint { pool: id, buffer }]);
        }
        assert_eq!(registry_of(pool.header()).iter().count(), 1);
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
        let (id, buffer, base) = (pool.header().id(), point.buffer().id(), pool.fills()[0].base());
        let fill = Event::Fill { pool: id, buffer, base, size: FILL };
        assert_eq!(events.take()[1..], [fill], "after the pool was extended");
        assert_eq!(arena.counts().fills.get(), 1);
    });
}

// Transitions 2 and 4.
#[test]
fn the_fast_path_calls_no_hook_and_no_pool() {
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
fn a_trip_while_ready_is_observed_at_the_next_reserve() {
    with_events(|arena, events| {
        let pool = BumpPool::create(arena, FILL);
        let mut point = listening(&pool, Draws::Never);
        let first = allocate(&mut point, OBJECT).unwrap();
        events.take();
        (0..3).for_each(|_| point.tripper().trip());
        assert_eq!((mode(&point), point.control().trips()), (TRAPPED, 0));
        let second = point.reserve(OBJECT).unwrap().as_ptr();
        assert_eq!(addr(second).get(), addr(first).get() + OBJECT.size());
        assert_eq!((mode(&point), point.control().notices.clone()), (READY, vec![Notice::Tripped(3)]));
        assert_eq!(arena.counts().trips.get(), 3);
        let buffer = point.buffer().id();
        assert_eq!(events.take(), [Event::Trip { pool: pool.header().id(), buffer, requests: 3 }]);
    });
}

#[test]
fn a_trip_while_reset_is_heard_at_the_next_reserve() {
    with_bump(|pool| {
        let mut point = listening(pool, Draws::Never);
        point.tripper().trip();
        assert_eq!(mode(&point), RESET);
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!(point.control().notices, [Notice::Tripped(1)]);
    });
}

/// Trips are observed even if the reserve is refused.
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
        let objects = AddrRange::new(now.base, now.init).unwrap();
        let flip = Event::Flip { pool: pool.header().id(), buffer: point.buffer().id(), objects };
        assert_eq!((events.take(), arena.counts().flips.get()), (vec![flip], 1));
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
        let (id, buffer) = (pool.header().id(), point.buffer().id());
        let flip = Event::Flip { pool: id, buffer, objects: AddrRange::new(addr(first), end).unwrap() };
        let failed = Event::CommitFailed { pool: id, buffer, object: end, size: OBJECT.size() };
        assert_eq!(events.take(), [flip, failed]);
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

    // SAFETY: this is used on one thread, on which program order is enough.
    unsafe impl BarrierPair for FlipInCommit {
        fn light(self) {
            let buffer = FLIP_IN_COMMIT.swap(core::ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: null, or set below to a buffer that outlives the commit.
            if let Some(buffer) = unsafe { buffer.as_ref() } {
                let seen = flip_buffer(buffer, self).map(AddrRange::limit);
                assert_eq!(seen, Some(Addr::of(buffer.scan_limit())));
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
            flip_buffers(pool, |_, _| visits.set(visits.get() + 1));
        };
        allocate_through(&mut point, OBJECT, flips).unwrap();
        let buffer = point.buffer();
        assert_eq!((flip_buffer(buffer, SymmetricFence), visits.get()), (None, 0));
        assert_eq!(mode(&point), READY);
    });
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
        let object = addr(allocate(&mut point, OBJECT).unwrap());
        events.take();
        point.empty();
        assert_eq!((mode(&point), point.room(), pool.fills().len()), (RESET, 0, 0));
        let unused = FILL - OBJECT.size();
        let (id, buffer) = (pool.header().id(), point.buffer().id());
        let base = object.checked_add(OBJECT.size()).unwrap();
        assert_eq!(events.take(), [Event::Empty { pool: id, buffer, base, size: unused }]);
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

/// A deep check of a pool looks at its buffers: each kind of damage is found by it (design/ap.md `.check.deep`).
#[test]
fn a_deep_check_of_a_pool_visits_its_buffers() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        let bystander = AllocationPoint::create(pool).unwrap();
        let found = |level| pool.header().check(level).map_err(|error| error.rule);
        assert_eq!(found(CheckLevel::Deep), Ok(()));
        let now = point.buffer().snapshot().unwrap();
        // SAFETY: the point, which is the owner, does nothing while the test plays it.
        let mut owner = unsafe { Owner::new(point.buffer()) };
        let (base, init, limit) = (owner.base(), owner.init(), owner.pool_limit());
        for off in 1..MIN_ALIGN {
            owner.declare(init.wrapping_byte_sub(off));
            assert_eq!(
                found(CheckLevel::Deep),
                Err("base, init, alloc and limit are aligned as objects of the pool")
            );
        }
        owner.declare(limit.wrapping_byte_add(MIN_ALIGN));
        assert_eq!(found(CheckLevel::Deep), Err("init <= alloc <= pool limit"));
        assert_eq!(found(CheckLevel::Shallow), Ok(()), "a shallow check looks at no buffer");
        owner.declare(init);
        assert_eq!(found(CheckLevel::Deep), Ok(()));
        let other = BumpPool::create(pool.header().arena(), FILL);
        let mut foreign = AllocationPoint::create(&other).unwrap();
        allocate(&mut foreign, OBJECT).unwrap();
        let theirs = foreign.buffer().snapshot().unwrap();
        let word = |addr: Addr| base.with_addr(addr.get());
        for (from, to) in
            [(theirs.base, theirs.pool_limit), (now.base, theirs.pool_limit.max(now.pool_limit))]
        {
            owner.detach();
            owner.attach(word(from), word(from), word(to));
            let is_own = (from, to) == (now.base, now.pool_limit);
            let rule = Err("what a buffer has left is its pool's");
            assert_eq!(found(CheckLevel::Deep), if is_own { Ok(()) } else { rule });
        }
        owner.detach();
        owner.attach(base, init, limit);
        assert_eq!(found(CheckLevel::Deep), Ok(()));
        drop(bystander);
    });
}

/// What the owner knows and what observers know (design/ap.md `.ready`).
#[test]
fn the_owner_knows_whether_it_is_ready() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let observed = |point: &AllocationPoint<'_, _>| point.buffer().snapshot().unwrap().readiness();
        assert_eq!((point.is_ready(), observed(&point)), (true, Readiness::Ready), "reset");
        let buffer = point.buffer();
        let reservation = point.reserve(OBJECT).unwrap();
        assert_eq!(buffer.snapshot().unwrap().readiness(), Readiness::Unknown, "a token moves no word");
        drop(reservation);
        assert_eq!((point.is_ready(), observed(&point)), (true, Readiness::Unknown), "it was given up");
        allocate(&mut point, OBJECT).unwrap();
        assert_eq!((point.is_ready(), observed(&point)), (true, Readiness::Unknown));
        point.empty();
        assert_eq!((point.is_ready(), observed(&point)), (true, Readiness::Ready));
    });
}
