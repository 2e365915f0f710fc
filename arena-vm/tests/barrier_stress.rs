//! Commit against flip on hardware: the half of the protocol that loom cannot model
//! (design/ap.md `.barrier.hardware`).
//!
//! Each round one thread commits an object and another flips its buffer at the same
//! time, or two do. Lost would be: the commit stands, and a flip did not see the
//! object. `TRIPOINT_ROUNDS` sets the number of rounds, `TRIPOINT_SEED` the random
//! pauses in them. Optimised code comes far closer to the window than a debug build,
//! whose controls lose a thousand times less:
//!
//! ```text
//! verify/stress --rounds 10000000
//! ```
#![cfg(all(target_os = "linux", not(miri)))]

use core::hint;
use core::ptr::without_provenance_mut;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use tripoint_ap::internal::{Owner, buffer_without_pool};
use tripoint_arena_vm::Membarrier;
use tripoint_core::internal::{compiler_fence, fence};
use tripoint_core::{BarrierPair, BufferKind, RankSet, SymmetricFence};
use tripoint_oracle::Party;

/// The rounds of a pair that must lose nothing, unless the environment says
/// otherwise.
const ROUNDS: usize = 50_000;
/// Rounds after which a control that has lost nothing is given up.
const CONTROL_ROUNDS_MAX: usize = 40 * ROUNDS;
/// The size of an object, in bytes. Addresses are only compared.
const OBJECT: usize = 16;
const BASE: usize = 0x1000;

/// Held by a test that needs both cores.
static TWO_CORES: Mutex<()> = Mutex::new(());

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn rounds() -> usize {
    setting("TRIPOINT_ROUNDS", ROUNDS)
}

/// Random pauses of one thread (Knuth's MMIX generator).
struct Pauses(u64);

impl Pauses {
    fn of_thread(thread: usize) -> Self {
        let seed = setting("TRIPOINT_SEED", 1) as u64;
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(thread as u64))
    }

    /// Up to `most` turns of a spin loop.
    fn pause(&mut self, most: u64) {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (0..(self.0 >> 33) % most).for_each(|_| hint::spin_loop());
    }
}

/// Waits until `done`, without a clock, and lets other threads run rarely.
fn wait_until(party: &Party, done: impl Fn() -> bool) {
    let look_on = || {
        (0..20_000).any(|_| {
            hint::spin_loop();
            done()
        })
    };
    if !done() {
        party.wait_until(look_on);
    }
}

/// Memory far larger than any cache, to keep a store buffer full with.
struct Cold {
    words: Vec<AtomicU64>,
    next: usize,
}

impl Cold {
    const WORDS: usize = 8 << 20;

    fn new() -> Self {
        Self { words: (0..Self::WORDS).map(|_| AtomicU64::new(0)).collect(), next: 0 }
    }

    /// Stores to a dozen lines that no cache has: what is stored next waits behind
    /// them, while loads go ahead.
    #[inline(always)]
    fn fill_store_buffer(&mut self) {
        for _ in 0..12 {
            self.next = (self.next + 1_000_003) % Self::WORDS;
            self.words[self.next].store(1, Ordering::Relaxed);
        }
    }
}

/// Races commits against as many flips at once; how many objects were lost.
fn race<B: BarrierPair>(rounds: usize, flippers: usize, barrier: B) -> usize {
    let _one_at_a_time = TWO_CORES.lock().unwrap_or_else(PoisonError::into_inner);
    let buffer = buffer_without_pool(BufferKind::Mutator, RankSet::EXACT);
    // SAFETY: the buffer was just made, and gets no other owner.
    let mut owner = unsafe { Owner::new(&buffer) };
    let limit = without_provenance_mut(BASE + rounds * OBJECT);
    owner.attach(without_provenance_mut(BASE), without_provenance_mut(BASE), limit);
    let (begun, flips, seen) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let party = Party::new();
    let flip_each_round = |flipper: usize| {
        let _member = party.enter();
        let mut pauses = Pauses::of_thread(flipper);
        for round in 1..=rounds {
            wait_until(&party, || begun.load(Ordering::Acquire) >= round);
            pauses.pause(8);
            // SAFETY: the pair that the owner below commits with; the controls'
            // pairs are wrong on purpose.
            let objects = unsafe { buffer.flip(barrier) }.expect("the owner waits for flips");
            seen.fetch_min(objects.limit().get(), Ordering::Relaxed);
            flips.fetch_add(1, Ordering::Release);
        }
    };
    let mut cold = Cold::new();
    let mut lost = 0;
    thread::scope(|scope| {
        let _member = party.enter();
        for flipper in 0..flippers {
            let flip_each_round = &flip_each_round;
            scope.spawn(move || flip_each_round(flipper));
        }
        let mut pauses = Pauses::of_thread(flippers);
        for round in 1..=rounds {
            owner.rearm(limit, &mut |_| {});
            let object = owner.init();
            let end = object.wrapping_add(OBJECT);
            seen.store(usize::MAX, Ordering::Relaxed);
            begun.store(round, Ordering::Release);
            pauses.pause(16);
            cold.fill_store_buffer();
            let stands = owner.commit(object, end, barrier);
            wait_until(&party, || flips.load(Ordering::Acquire) == round * flippers);
            lost += usize::from(stands && seen.load(Ordering::Relaxed) < end.addr());
        }
    });
    lost
}

/// Says what came of a race, in the form that `verify/stress` shows.
fn tell(race: &str, rounds: usize, lost: usize, began: Instant) {
    let (seconds, seed) = (began.elapsed().as_secs_f64(), setting("TRIPOINT_SEED", 1));
    println!("race: {race}: {rounds} rounds, {lost} objects lost, {seconds:.1} s, seed {seed}");
}

fn assert_loses_nothing<B: BarrierPair>(barrier: B) {
    // Two flippers take turns where there are two cores, and each round waits for both.
    for (flippers, rounds) in [(1, rounds()), (2, rounds() / 100)] {
        let began = Instant::now();
        let lost = race(rounds, flippers, barrier);
        tell(&format!("{barrier:?}, flippers: {flippers}"), rounds, lost, began);
        assert_eq!(lost, 0);
    }
}

/// Races a broken pair until it has lost an object, and at least for some rounds.
fn assert_loses<B: BarrierPair>(barrier: B) {
    let (mut raced, mut lost) = (0, 0);
    let (least, began) = (rounds().min(20 * ROUNDS), Instant::now());
    while raced < least || (lost == 0 && raced < CONTROL_ROUNDS_MAX) {
        lost += race(ROUNDS, 1, barrier);
        raced += ROUNDS;
    }
    tell(&format!("control: {barrier:?}"), raced, lost, began);
    assert!(lost > 0, "the race does not find what it is there to find");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "too slow to race unless optimised: cargo test --release")]
fn membarrier_loses_nothing() {
    match Membarrier::register() {
        Ok(barrier) => assert_loses_nothing(barrier),
        Err(_) => tripoint_oracle::skipped!("this kernel offers none"),
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "too slow to race unless optimised: cargo test --release")]
fn symmetric_fences_lose_nothing() {
    assert_loses_nothing(SymmetricFence);
}

/// Compiler fences only, as if there were one core.
#[derive(Clone, Copy, Debug)]
struct NoBarrier;

// SAFETY: not upheld, on purpose: the race must find that.
unsafe impl BarrierPair for NoBarrier {
    #[inline(always)]
    fn light(self) {
        compiler_fence(Ordering::SeqCst);
    }
    fn heavy(self) {
        compiler_fence(Ordering::SeqCst);
    }
}

/// The light half of membarrier without its heavy half.
#[derive(Clone, Copy, Debug)]
struct FlipFencedOnly;

// SAFETY: not upheld, on purpose: the race must find that.
unsafe impl BarrierPair for FlipFencedOnly {
    #[inline(always)]
    fn light(self) {
        compiler_fence(Ordering::SeqCst);
    }
    fn heavy(self) {
        fence(Ordering::SeqCst);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "too slow to race unless optimised: cargo test --release")]
fn control_without_barriers_loses_objects() {
    assert_loses(NoBarrier);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "too slow to race unless optimised: cargo test --release")]
fn control_with_a_fence_in_flip_only_loses_objects() {
    assert_loses(FlipFencedOnly);
}
