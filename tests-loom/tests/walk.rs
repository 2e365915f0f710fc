//! Whole allocation points, against threads that walk their pool, flip it, or trip them.
//! Points are created, filled, used, emptied and dropped meanwhile (design/core.md `.registry`,
//! design/ap.md `.attach`, `.stop.limit`).
//!
//! These run the code of `ap` from `create` to `drop`; its other models run one protocol
//! each. Bound: two preemptions, because there are many steps.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::alloc::Layout;
use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use tests_loom::{NoLight, lend, model_bounded, thread, with_arena};
use tripoint_ap::internal::Owner;
use tripoint_ap::{AllocationPoint, Buffer, BufferMode, flip_buffers, for_each_buffer};
use tripoint_core::internal::{AtomicUsize, Ordering, registry_of};
use tripoint_core::{Addr, BarrierPair, BufferKind, Check, CheckLevel, Control, PoolClass, SymmetricFence};
use tripoint_oracle::{Draws, FlipPool, Listener, MIN_ALIGN};

const BOUND: usize = 2;
/// Four objects.
const FILL: usize = 4 * MIN_ALIGN;
const OBJECT: Layout = Layout::new::<u128>();

type Pool<B> = FlipPool<'static, B>;
type Point<B, C> = AllocationPoint<'static, Pool<B>, C>;

/// Runs a model with a pool for its threads, which end before it does.
fn with_pool<B: BarrierPair + 'static>(barrier: B, run: impl FnOnce(&'static Pool<B>)) {
    with_arena(|arena| {
        let pool = Box::new(FlipPool::create(arena, FILL, barrier));
        // SAFETY: the threads of a model have ended when it ends.
        unsafe { lend(pool, |pool| run(pool)) };
    });
}

/// Allocates an object. Returns its address, and whether it stands.
fn alloc<B: BarrierPair, C: Control>(point: &mut Point<B, C>) -> (Addr, bool) {
    let reservation = point.reserve(OBJECT).unwrap();
    let object = reservation.as_ptr();
    // SAFETY: objects of these pools have no format and no readers.
    let stands = unsafe { reservation.commit() }.is_ok();
    (Addr::of(object.as_ptr()), stands)
}

/// A walk while an allocation point does something. `look` says whether it found
/// words that agree, as it has to in some execution.
fn walk(owner: fn(Point<SymmetricFence, ()>), look: fn(&Buffer) -> bool) {
    // Not part of the model: it counts over all executions.
    let agreed = Arc::new(AtomicBool::new(false));
    let agrees = Arc::clone(&agreed);
    model_bounded(BOUND, move || {
        with_pool(SymmetricFence, |pool| {
            let mut point = AllocationPoint::create(pool).unwrap();
            alloc(&mut point);
            let owner = thread::spawn(move || owner(point));
            for_each_buffer(pool, |buffer| {
                agrees.fetch_or(look(buffer), Ordering::Relaxed);
            });
            owner.join().unwrap();
            for_each_buffer(pool, |_| panic!("a buffer was left"));
            assert_eq!(registry_of(pool.header()).iter().count(), 1, "the descriptor was not claimed again");
        });
    });
    assert!(agreed.load(Ordering::Relaxed), "no walk found words that agree");
}

/// What is not allocated is returned to the pool, and the next object comes from a new fill.
fn refill(mut point: Point<SymmetricFence, ()>) {
    point.empty();
    assert!(alloc(&mut point).1);
}

/// Another allocation point takes the descriptor over.
fn succeed(point: Point<SymmetricFence, ()>) {
    let pool = point.pool();
    drop(point);
    drop(AllocationPoint::create(pool).unwrap());
}

/// Its range is that of one fill, or empty, and what is allocated lies in it.
fn look(buffer: &Buffer) -> bool {
    let Some(now) = buffer.snapshot() else { return false };
    assert!(now.range().size().is_multiple_of(FILL), "the words are of two fills");
    assert!(now.init <= now.alloc && now.alloc <= now.pool_limit, "the words are of two fills");
    true
}

#[test]
fn walks_find_one_fill_or_none() {
    walk(refill, look);
}

#[test]
fn walks_find_whole_buffers() {
    walk(succeed, |buffer| {
        assert_eq!(buffer.check(CheckLevel::Shallow), Ok(()));
        buffer.snapshot().is_some()
    });
}

/// The twin: the words are read without asking whether they are changing.
#[test]
#[should_panic(expected = "the words are of two fills")]
fn words_read_one_by_one_are_of_two_fills() {
    walk(refill, |buffer| {
        // SAFETY: not upheld, on purpose: the owner is another thread. It only reads.
        let owner = unsafe { Owner::new(buffer) };
        let (base, limit) = (owner.base(), owner.pool_limit());
        let size = limit.addr().wrapping_sub(base.addr());
        assert!(size == 0 || size == FILL, "the words are of two fills");
        true
    });
}

/// The twin: the sizes are read without asking whether they are changing.
#[test]
#[should_panic(expected = "more emptied than filled")]
fn sizes_read_one_by_one_are_of_two_owners() {
    walk(succeed, |buffer| {
        let emptied = buffer.empty_size();
        assert!(emptied <= buffer.fill_size(), "more emptied than filled");
        true
    });
}

/// The second object of a fill against a flip of the whole pool: it stands only if
/// the flip saw it, or it was begun after the owner had gone on from the flip.
fn flip<B: BarrierPair + 'static>(barrier: B, flip: fn(&Pool<B>) -> usize) {
    model_bounded(BOUND, move || {
        with_pool(barrier, |pool| {
            let mut point = AllocationPoint::create(pool).unwrap();
            alloc(&mut point);
            let before_flip = Arc::new(AtomicUsize::new(0));
            let flipper = {
                let before_flip = Arc::clone(&before_flip);
                thread::spawn(move || {
                    before_flip.store(1, Ordering::Relaxed);
                    flip(pool)
                })
            };
            let reservation = point.reserve(OBJECT).unwrap();
            let object = reservation.as_ptr().addr().get();
            let follows = before_flip.load(Ordering::Relaxed) == 1;
            // SAFETY: objects of these pools have no format and no readers.
            let stands = unsafe { reservation.commit() }.is_ok();
            let seen = flipper.join().unwrap() > object;
            assert!(!stands || seen || follows, "the object stands and was not seen");
        });
    });
}

fn flip_pool<B: BarrierPair>(pool: &Pool<B>) -> usize {
    let mut seen = 0;
    flip_buffers(pool, |buffer, objects| {
        // If the owner went on first, the objects that there are by then.
        seen = objects.map_or_else(|| buffer.scan_limit().addr(), |objects| objects.limit().get());
    });
    seen
}

#[test]
fn flipping_a_pool_loses_nothing() {
    flip(SymmetricFence, flip_pool);
}

/// The twin: what was whole is read before the pool is flipped.
#[test]
#[should_panic(expected = "the object stands and was not seen")]
fn looking_before_flipping_loses_objects() {
    flip(SymmetricFence, |pool| {
        let mut seen = 0;
        for_each_buffer(pool, |buffer| seen = buffer.scan_limit().addr());
        flip_pool(pool);
        seen
    });
}

/// The twin: commits without their barrier. Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "the object stands and was not seen"))]
fn without_the_light_barrier_objects_are_lost() {
    flip(NoLight, flip_pool);
}

/// Three objects, the second at a stop, and a stop armed behind the third, against
/// trips: the stop is reported, and every trip is reported or has left the point
/// trapped.
fn stops(trippers: usize, go_on: fn(&Point<SymmetricFence, Listener>)) {
    model_bounded(BOUND, move || {
        with_pool(SymmetricFence, |pool| {
            let control = Listener::new(Draws::Every(MIN_ALIGN));
            let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, control).unwrap();
            alloc(&mut point);
            let threads = Vec::from_iter((0..trippers).map(|_| {
                let tripper = point.tripper();
                thread::spawn(move || tripper.trip())
            }));
            let second = alloc(&mut point).0;
            alloc(&mut point);
            go_on(&point);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let mode = point.buffer().snapshot().unwrap().mode;
            let reported = point.control().trips();
            assert!(mode.contains(BufferMode::TRAPPED) || reported == trippers, "a trip was lost");
            assert!(mode.intersects(BufferMode::TRAPPED | BufferMode::STOPPED), "a stop was lost");
            let stopped = Vec::from_iter(point.control().stops().iter().map(|stop| stop.object));
            assert_eq!(stopped, [second], "a stop was lost, or reported twice");
            alloc(&mut point);
            assert_eq!(point.control().trips(), trippers, "a trip was reported twice, or never");
        });
    });
}

#[test]
fn one_trip_is_not_lost_among_stops() {
    stops(1, |_| ());
}

#[test]
fn two_trips_are_not_lost_among_stops() {
    stops(2, |_| ());
}

/// The twin: a stop is armed again without a second look.
#[test]
#[should_panic(expected = "a trip was lost")]
fn arming_a_stop_blindly_loses_trips() {
    stops(1, |point| {
        // SAFETY: the model's thread is the owner, and uses only this point
        // meanwhile.
        let mut owner = unsafe { Owner::new(point.buffer()) };
        owner.publish_limit(owner.pool_limit().wrapping_sub(MIN_ALIGN));
    });
}
