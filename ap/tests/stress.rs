//! Trips raced on hardware: by two threads, and by real signals.
//!
//! `TRIPOINT_ROUNDS` sets the number of raced rounds. The number the project
//! promises is run by
//!
//! ```text
//! cargo test --release -p tripoint-ap --test stress -- --ignored --nocapture
//! ```

mod common;

use core::alloc::Layout;
use core::hint;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use common::{BumpPool, Unformatted, with_arena};
use tripoint_ap::{AllocationPoint, Control};
use tripoint_core::BufferKind;

/// The rounds of a raced test, unless it is told otherwise.
const ROUNDS: u64 = 200_000;
/// The rounds that the project promises.
const PROMISED_ROUNDS: u64 = 10_000_000;
/// Rounds after which a control that has lost nothing is given up.
const CONTROL_ROUNDS_MAX: u64 = 200 * ROUNDS;

fn rounds() -> u64 {
    std::env::var("TRIPOINT_ROUNDS")
        .map_or(ROUNDS, |rounds| rounds.parse().expect("TRIPOINT_ROUNDS is a number"))
}

/// Held by a test that needs both cores, so that tests do not take turns on one.
static TWO_CORES: Mutex<()> = Mutex::new(());

/// Waits until `done`, without a clock.
fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        // Mostly the other thread runs and answers at once: keep the core for that.
        if !(0..20_000).any(|_| {
            done() || {
                hint::spin_loop();
                false
            }
        }) {
            thread::yield_now();
        }
    }
}

/// Races `trip`, called once a round on another thread, against `operate`, called
/// all the time on this one, which adds the trips it hears of to `heard`. How many
/// were lost.
///
/// A trip is lost if it was not heard of when an operation that began after it
/// has ended. The next trip follows as soon as one is heard of, while the owner is
/// still at it.
fn race(rounds: u64, heard: &AtomicU64, trip: impl Fn() + Sync, mut operate: impl FnMut()) -> u64 {
    let _one_at_a_time = TWO_CORES.lock();
    let (operations, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let tripper = scope.spawn(|| {
            let mut lost = 0;
            for round in 1..=rounds {
                trip();
                // One operation may have begun before the trip; the next did not.
                let enough = operations.load(Ordering::SeqCst) + 2;
                let is_heard = || heard.load(Ordering::SeqCst) >= round - lost;
                wait_until(|| is_heard() || operations.load(Ordering::SeqCst) >= enough);
                if !is_heard() {
                    lost += 1;
                }
            }
            done.store(true, Ordering::SeqCst);
            lost
        });
        while !done.load(Ordering::SeqCst) {
            operate();
            operations.fetch_add(1, Ordering::SeqCst);
        }
        tripper.join().unwrap()
    })
}

/// Handles trips: counts them, and takes about as long as the next one needs to
/// come.
fn hear(heard: &AtomicU64, trips: u64) {
    heard.fetch_add(trips, Ordering::SeqCst);
    (0..20).for_each(|_| hint::spin_loop());
}

/// A control that takes the slow path at every reserve, and counts trips.
#[derive(Debug)]
struct AlwaysStop<'h>(&'h AtomicU64);

impl Control for AlwaysStop<'_> {
    fn next_stop(&mut self) -> usize {
        0
    }

    fn tripped(&mut self, requests: usize) {
        hear(self.0, requests as u64);
    }
}

/// The real thing: every reserve re-arms, and none is committed.
fn race_allocation_point(rounds: u64) {
    with_arena(1 << 20, |arena| {
        let pool = BumpPool::create(arena, 4096);
        let heard = AtomicU64::new(0);
        let control = AlwaysStop(&heard);
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
        let tripper = point.tripper();
        let layout = Layout::new::<u64>();
        let lost = race(rounds, &heard, || tripper.trip(), || drop(point.reserve(layout).unwrap()));
        assert_eq!((lost, heard.load(Ordering::SeqCst)), (0, rounds));
        println!("allocation point: {rounds} raced trips, {lost} lost");
    });
}

#[test]
fn no_trip_is_lost() {
    race_allocation_point(rounds());
}

#[test]
#[ignore = "takes a while: the promised number of rounds, in release mode"]
fn no_trip_is_lost_in_the_promised_rounds() {
    race_allocation_point(PROMISED_ROUNDS);
}

/// A `limit` that is re-armed without counting requests: zero or `ARMED`.
struct Unsequenced(AtomicUsize);

const ARMED: usize = 0x1000;

impl Unsequenced {
    fn trip(&self) {
        self.0.swap(0, Ordering::AcqRel);
    }

    /// Looks whether it was tripped, and then stores.
    fn check_then_store(&self, heard: &AtomicU64) {
        if self.0.load(Ordering::Acquire) == 0 {
            hear(heard, 1);
        }
        self.0.store(ARMED, Ordering::Release);
    }

    /// Replaces only what it has handled. This does see a trip that comes between
    /// load and exchange, unless it has just handled another.
    fn compare_exchange(&self, heard: &AtomicU64) {
        let mut limit = self.0.load(Ordering::Acquire);
        loop {
            if limit == 0 {
                hear(heard, 1);
            }
            match self.0.compare_exchange(limit, ARMED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => limit = now,
            }
        }
    }
}

/// Races a broken re-arm until it has lost a trip.
fn assert_loses(name: &str, rearm: fn(&Unsequenced, &AtomicU64)) {
    let (mut raced, mut lost) = (0, 0);
    while raced < rounds() || (lost == 0 && raced < CONTROL_ROUNDS_MAX) {
        let (limit, heard) = (Unsequenced(AtomicUsize::new(ARMED)), AtomicU64::new(0));
        lost += race(ROUNDS, &heard, || limit.trip(), || rearm(&limit, &heard));
        raced += ROUNDS;
    }
    println!("{name}: {raced} raced trips, {lost} lost");
    assert!(lost > 0, "the race does not find what it is there to find");
}

#[test]
fn control_check_then_store_loses_trips() {
    assert_loses("check, then store", Unsequenced::check_then_store);
}

#[test]
fn control_compare_exchange_loses_trips() {
    assert_loses("compare and exchange", Unsequenced::compare_exchange);
}

/// Real signals, handled on the owner's thread wherever it happens to be.
#[cfg(unix)]
mod signals {
    use core::mem::MaybeUninit;
    use core::ptr;
    use core::sync::atomic::AtomicPtr;

    use super::common::FlipPool;
    use super::*;
    use tripoint_ap::Buffer;
    use tripoint_core::{BarrierPair, SingleCore, SymmetricFence};

    /// Signals sent from another thread in each test.
    const SIGNALS: usize = 20_000;

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
        LAST_SEEN.store(seen.addr(), Ordering::SeqCst);
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
        // SAFETY: no duties.
        let owner = unsafe { libc::pthread_self() };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for sent in 1..=SIGNALS {
                    // SAFETY: the thread lives, as it waits for this one.
                    assert_eq!(unsafe { libc::pthread_kill(owner, libc::SIGUSR1) }, 0);
                    // Signals do not queue: wait for each.
                    wait_until(|| HANDLED.load(Ordering::SeqCst) >= sent);
                }
                done.store(true, Ordering::SeqCst);
            });
            while !done.load(Ordering::SeqCst) {
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
        let _one_at_a_time = TWO_CORES.lock();
        with_arena(1 << 20, |arena| {
            let pool = FlipPool::create(arena, 4096, SymmetricFence);
            let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, Count(0)).unwrap();
            start(point.buffer(), trip);
            // Exactly between reserve and commit.
            for raised in 1..=100 {
                // SAFETY: the handler is async-signal-safe.
                point.make_with(|| assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0)).unwrap();
                assert_eq!(point.control().0, raised - 1, "heard at the next reserve");
            }
            drop(point.reserve(OBJECT).unwrap());
            assert_eq!(point.control().0, 100);
            // Anywhere at all.
            start(point.buffer(), trip);
            bombard(|| assert!(allocate(&pool, &mut point).stands, "a trip fails no commit"));
            drop(point.reserve(OBJECT).unwrap());
            assert_eq!(point.control().0, 100 + SIGNALS);
        });
    }

    /// A commit stands exactly where a flip since its reserve saw the object.
    #[test]
    fn flips_from_a_signal_handler_agree_with_commits() {
        let _one_at_a_time = TWO_CORES.lock();
        with_arena(1 << 20, |arena| {
            // SAFETY: flips run in a handler on the owner's thread.
            let pool = FlipPool::create(arena, 4096, unsafe { SingleCore::new() });
            let mut point = AllocationPoint::create(&pool).unwrap();
            start(point.buffer(), flip);
            let (mut flipped, mut failed) = (0, 0);
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
            println!(
                "{SIGNALS} flips by signal: {flipped} between reserve and commit, {failed} commits failed"
            );
            assert!(0 < failed && failed < flipped, "both outcomes were met");
        });
    }
}
