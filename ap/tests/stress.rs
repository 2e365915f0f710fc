//! Trips raced on hardware: by other threads, and by real signals.
//!
//! `TRIPOINT_ROUNDS` sets the number of raced rounds, `TRIPOINT_SEED` the random
//! pauses between them. Longer, with the controls beside it:
//!
//! ```text
//! verify/stress --rounds 10000000
//! ```

mod common;

use core::alloc::Layout;
use core::hint;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use common::{BumpPool, with_arena};
use tripoint_ap::AllocationPoint;
use tripoint_core::internal::{Limit, Trips};
use tripoint_core::{BufferKind, Control};
use tripoint_oracle::effort;

/// The rounds of a raced test, unless `TRIPOINT_ROUNDS` says otherwise.
const ROUNDS: u64 = effort(200_000) as u64;
/// The rounds after which a control that has lost nothing fails.
const CONTROL_ROUNDS_MAX: u64 = 200 * ROUNDS;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn rounds() -> u64 {
    setting("TRIPOINT_ROUNDS", ROUNDS)
}

/// Held by a test that needs both cores, so that tests do not take turns on one.
static TWO_CORES: Mutex<()> = Mutex::new(());

/// Waits until `done`, and looks at the clock rarely.
fn wait_until(done: impl Fn() -> bool) {
    // Mostly the other thread runs and answers at once: keep the core for that.
    let look_on = || {
        (0..20_000).any(|_| {
            hint::spin_loop();
            done()
        })
    };
    if !done() {
        tripoint_oracle::wait_until(look_on);
    }
}

/// Random pauses of one thread (Knuth's MMIX generator).
struct Pauses(u64);

impl Pauses {
    fn of_thread(thread: u64) -> Self {
        Self(setting("TRIPOINT_SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(thread))
    }

    /// Mostly none; one in eight up to some hundred ns.
    fn pause(&mut self) {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = self.0 >> 33;
        if drawn.is_multiple_of(8) {
            (0..drawn / 8 % 64).for_each(|_| hint::spin_loop());
        }
    }
}

/// Prints the outcome of a race, in the form that `verify/stress` shows.
fn report(race: &str, rounds: u64, lost: u64, began: Instant) {
    let (seconds, seed) = (began.elapsed().as_secs_f64(), setting("TRIPOINT_SEED", 1));
    println!("race: {race}: {rounds} rounds, {lost} trips lost, {seconds:.1} s, seed {seed}");
}

/// Races `trip`, called `rounds` times in all by other threads, against `operate`,
/// called all the time on this one, which adds the trips it observes to `observed_trips`.
/// Returns how many were lost.
///
/// A trip is lost if it was not observed when an operation that began after it
/// has ended. A tripper's next trip follows as soon as one is observed, while the
/// owner still handles it.
fn race(
    rounds: u64,
    trippers: u64,
    observed_trips: &AtomicU64,
    trip: impl Fn() + Sync,
    mut operate: impl FnMut(),
) -> u64 {
    let _one_at_a_time = TWO_CORES.lock().unwrap_or_else(PoisonError::into_inner);
    let (operations, working) = (AtomicU64::new(0), AtomicU64::new(trippers));
    let (requested, lost) = (AtomicU64::new(0), AtomicU64::new(0));
    let trip_often = |tripper: u64| {
        let mut pauses = Pauses::of_thread(tripper);
        let share = rounds / trippers + u64::from(tripper < rounds % trippers);
        for _ in 0..share {
            pauses.pause();
            trip();
            let due = requested.fetch_add(1, Ordering::SeqCst) + 1;
            // One operation may have begun before the trip. The owner's next addition
            // reads this one, so the operation after that happens after the trip
            // (design/ap.md `.trip.visible`).
            let enough = operations.fetch_add(0, Ordering::SeqCst) + 2;
            let is_observed = || observed_trips.load(Ordering::SeqCst) + lost.load(Ordering::SeqCst) >= due;
            wait_until(|| is_observed() || operations.load(Ordering::SeqCst) >= enough);
            if !is_observed() {
                lost.fetch_add(1, Ordering::SeqCst);
            }
        }
        working.fetch_sub(1, Ordering::SeqCst);
    };
    thread::scope(|scope| {
        for tripper in 0..trippers {
            let trip_often = &trip_often;
            scope.spawn(move || trip_often(tripper));
        }
        let mut pauses = Pauses::of_thread(trippers);
        while working.load(Ordering::SeqCst) > 0 {
            operate();
            operations.fetch_add(1, Ordering::SeqCst);
            pauses.pause();
        }
    });
    lost.into_inner()
}

/// Handles trips: counts them, and takes about as long as the next one needs to
/// arrive.
fn handle_trips(observed_trips: &AtomicU64, trips: u64) {
    observed_trips.fetch_add(trips, Ordering::SeqCst);
    (0..20).for_each(|_| hint::spin_loop());
}

/// A control that counts trips, and stops each time after a fixed number of
/// bytes.
#[derive(Debug)]
struct Counting<'c> {
    observed_trips: &'c AtomicU64,
    stop: usize,
}

impl Control for Counting<'_> {
    fn next_stop(&mut self) -> usize {
        self.stop
    }

    fn tripped(&mut self, requests: usize) {
        handle_trips(self.observed_trips, requests as u64);
    }
}

/// The real thing: reserves, none of which is committed.
fn race_allocation_point(name: &str, rounds: u64, trippers: u64, stop: usize) {
    with_arena(1 << 20, |arena| {
        let pool = BumpPool::create(arena, 4096);
        let (observed_trips, began) = (AtomicU64::new(0), Instant::now());
        let control = Counting { observed_trips: &observed_trips, stop };
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
        let tripper = point.tripper();
        let layout = Layout::new::<u64>();
        let reserve = || drop(point.reserve(layout).unwrap());
        let lost = race(rounds, trippers, &observed_trips, || tripper.trip(), reserve);
        report(name, rounds, lost, began);
        assert_eq!((lost, observed_trips.load(Ordering::SeqCst)), (0, rounds));
    });
}

/// Only a trip leads to the slow path, so one that re-arming swallowed is never observed.
#[test]
fn no_trip_is_lost() {
    race_allocation_point("1 tripper", rounds(), 1, usize::MAX);
}

#[test]
fn no_trip_of_several_trippers_is_lost() {
    race_allocation_point("3 trippers", rounds() / 10, 3, usize::MAX);
}

/// Every reserve re-arms.
#[test]
fn no_trip_is_lost_if_every_reserve_stops() {
    race_allocation_point("1 tripper, a stop at every reserve", rounds() / 10, 1, 0);
}

const ARMED: usize = 0x2000;

/// The words of the protocol, re-armed without a second look (design/ap.md `.trip.protocol`).
fn race_without_a_second_look(rounds: u64) -> u64 {
    let (trips, limit) = (Trips::new(), AtomicUsize::new(ARMED));
    let (observed_trips, mut observed) = (AtomicU64::new(0), 0);
    let rearm = || {
        if limit.load(Ordering::Acquire) == 0 {
            if trips.observe(&mut observed) != 0 {
                handle_trips(&observed_trips, 1);
            }
            limit.publish(ARMED);
        }
    };
    race(rounds, 1, &observed_trips, || trips.request([&limit]), rearm)
}

/// A `limit` that is re-armed without counting requests: zero or `ARMED`.
struct Unsequenced(AtomicUsize);

impl Unsequenced {
    fn race(rounds: u64, rearm: fn(&Self, &AtomicU64)) -> u64 {
        let (limit, observed_trips) = (Self(AtomicUsize::new(ARMED)), AtomicU64::new(0));
        race(rounds, 1, &observed_trips, || limit.trip(), || rearm(&limit, &observed_trips))
    }

    fn trip(&self) {
        self.0.swap(0, Ordering::AcqRel);
    }

    /// Looks whether it was tripped, and then stores.
    fn check_then_store(&self, observed_trips: &AtomicU64) {
        if self.0.load(Ordering::Acquire) == 0 {
            handle_trips(observed_trips, 1);
        }
        self.0.store(ARMED, Ordering::Release);
    }

    /// Replaces only what it has handled. This does see a trip that comes between
    /// load and exchange, unless it has just handled another.
    fn compare_exchange(&self, observed_trips: &AtomicU64) {
        let mut limit = self.0.load(Ordering::Acquire);
        loop {
            if limit == 0 {
                handle_trips(observed_trips, 1);
            }
            match self.0.compare_exchange(limit, ARMED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => limit = now,
            }
        }
    }
}

/// Races a broken re-arm until it has lost a trip, and at least for some rounds.
fn assert_loses(name: &str, race: impl Fn(u64) -> u64) {
    let (mut raced, mut lost) = (0, 0);
    let (least, began) = (rounds().min(10 * ROUNDS), Instant::now());
    while raced < least || (lost == 0 && raced < CONTROL_ROUNDS_MAX) {
        lost += race(ROUNDS);
        raced += ROUNDS;
    }
    report(name, raced, lost, began);
    assert!(lost > 0, "the race does not find what it is there to find");
}

#[test]
fn control_without_a_second_look_loses_trips() {
    assert_loses("control: no second look", race_without_a_second_look);
}

#[test]
fn control_check_then_store_loses_trips() {
    assert_loses("control: check, then store", |rounds| {
        Unsequenced::race(rounds, Unsequenced::check_then_store)
    });
}

#[test]
fn control_compare_exchange_loses_trips() {
    assert_loses("control: compare and exchange", |rounds| {
        Unsequenced::race(rounds, Unsequenced::compare_exchange)
    });
}

/// Real signals, handled on the owner's thread wherever it happens to be. Miri has none.
#[cfg(all(unix, not(miri)))]
mod signals {
    use core::mem::MaybeUninit;
    use core::ptr;
    use core::sync::atomic::AtomicPtr;

    use super::common::{FlipPool, Unformatted};
    use super::*;
    use tripoint_ap::Buffer;
    use tripoint_core::{BarrierPair, SingleCore, SymmetricFence};

    /// Signals sent from another thread in each test.
    fn signals() -> usize {
        (rounds() / 10) as usize
    }

    /// What handlers work on; under the lock.
    static BUFFER: AtomicPtr<Buffer> = AtomicPtr::new(ptr::null_mut());
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    static LAST_SEEN: AtomicUsize = AtomicUsize::new(0);

    fn buffer() -> &'static Buffer {
        // SAFETY: set before any signal, to a descriptor that outlives them all.
        unsafe { &*BUFFER.load(Ordering::Acquire) }
    }

    extern "C" fn trip(_signal: libc::c_int) {
        buffer().trip();
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }

    extern "C" fn flip(_signal: libc::c_int) {
        // SAFETY: the signal is sent to the owner's thread, on which this runs.
        let barrier = unsafe { SingleCore::new() };
        // SAFETY: the pair of the pool that the buffer is of.
        let seen = unsafe { buffer().flip(barrier) };
        LAST_SEEN.store(seen.map_or(0, |seen| seen.limit().get()), Ordering::SeqCst);
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }

    /// Handles SIGUSR1 by `handler`, on this process's owner thread.
    fn handle(handler: extern "C" fn(libc::c_int)) {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all zeros is a valid sigaction: no flags, empty mask.
        let action = unsafe { action.assume_init_mut() };
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: a valid action, whose handler is async-signal-safe.
        let result = unsafe { libc::sigaction(libc::SIGUSR1, action, ptr::null_mut()) };
        assert_eq!(result, 0);
    }

    /// Runs `operate` on this thread while another sends it signals, until all are
    /// handled.
    fn bombard(mut operate: impl FnMut()) {
        // SAFETY: the call has no duties: it returns the thread that makes it.
        let owner = unsafe { libc::pthread_self() };
        thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let mut pauses = Pauses::of_thread(0);
                for sent in 1..=signals() {
                    pauses.pause();
                    // SAFETY: the thread lives, as it waits for this one.
                    assert_eq!(unsafe { libc::pthread_kill(owner, libc::SIGUSR1) }, 0);
                    // Signals do not queue: wait for each.
                    wait_until(|| HANDLED.load(Ordering::SeqCst) >= sent);
                }
            });
            while !sender.is_finished() {
                operate();
            }
        });
    }

    fn start(buffer: &Buffer, handler: extern "C" fn(libc::c_int)) {
        BUFFER.store(ptr::from_ref(buffer).cast_mut(), Ordering::Release);
        HANDLED.store(0, Ordering::SeqCst);
        handle(handler);
    }

    /// Counts trips.
    #[derive(Debug)]
    struct Count(usize);

    impl Control for Count {
        fn tripped(&mut self, requests: usize) {
            self.0 += requests;
        }
    }

    const OBJECT: Layout = Layout::new::<[u64; 4]>();

    /// What became of an object.
    struct Outcome {
        /// The signals handled when its reservation was there.
        handled: usize,
        end: usize,
        stands: bool,
    }

    fn allocate<B: BarrierPair, C: Control>(
        pool: &FlipPool<'_, B>,
        point: &mut AllocationPoint<'_, FlipPool<'_, B>, C>,
    ) -> Outcome {
        if point.room() < OBJECT.size() {
            point.empty();
            // SAFETY: objects are only counted, never used.
            unsafe { pool.reclaim() };
        }
        let reservation = point.reserve(OBJECT).unwrap();
        let handled = HANDLED.load(Ordering::SeqCst);
        let (object, size) = (reservation.as_ptr(), reservation.size());
        // SAFETY: the reservation is valid for writes of its size.
        unsafe { object.write_bytes(0, size) };
        // SAFETY: the object was just written whole.
        let stands = unsafe { reservation.commit() }.is_ok();
        Outcome { handled, end: object.addr().get() + size, stands }
    }

    #[test]
    fn trips_from_a_signal_handler_are_counted_exactly() {
        let _one_at_a_time = TWO_CORES.lock().unwrap_or_else(PoisonError::into_inner);
        with_arena(1 << 20, |arena| {
            let pool = FlipPool::create(arena, 4096, SymmetricFence);
            let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, Count(0)).unwrap();
            start(point.buffer(), trip);
            // Exactly between reserve and commit.
            for raised in 1..=100 {
                // SAFETY: the handler is async-signal-safe.
                point.make_with(|| assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0)).unwrap();
                assert_eq!(point.control().0, raised - 1, "observed at the next reserve");
            }
            drop(point.reserve(OBJECT).unwrap());
            assert_eq!(point.control().0, 100);
            // Anywhere at all.
            let began = Instant::now();
            start(point.buffer(), trip);
            bombard(|| assert!(allocate(&pool, &mut point).stands, "a trip fails no commit"));
            drop(point.reserve(OBJECT).unwrap());
            let lost = 100 + signals() - point.control().0;
            report("trips from a signal handler", signals() as u64, lost as u64, began);
            assert_eq!(lost, 0);
        });
    }

    /// A commit stands exactly if a flip since its reserve saw the object.
    #[test]
    fn flips_from_a_signal_handler_agree_with_commits() {
        let _one_at_a_time = TWO_CORES.lock().unwrap_or_else(PoisonError::into_inner);
        with_arena(1 << 20, |arena| {
            // SAFETY: flips run in a handler on the owner's thread.
            let pool = FlipPool::create(arena, 4096, unsafe { SingleCore::new() });
            let mut point = AllocationPoint::create(&pool).unwrap();
            start(point.buffer(), flip);
            let (mut flipped, mut failed, began) = (0, 0, Instant::now());
            bombard(|| {
                let before = HANDLED.load(Ordering::SeqCst);
                let Outcome { handled, end, stands } = allocate(&pool, &mut point);
                let after = HANDLED.load(Ordering::SeqCst);
                if after == before {
                    assert!(stands, "nothing was flipped");
                } else if after > handled {
                    assert_eq!(stands, LAST_SEEN.load(Ordering::SeqCst) == end);
                    flipped += 1;
                    failed += usize::from(!stands);
                }
            });
            let (rounds, seconds) = (signals(), began.elapsed().as_secs_f64());
            println!(
                "race: flips from a signal handler: {rounds} rounds, 0 objects lost ({flipped} flips between \
                 reserve and commit, {failed} commits failed), {seconds:.1} s"
            );
            assert!(0 < failed && failed < flipped, "both outcomes were met");
        });
    }
}
