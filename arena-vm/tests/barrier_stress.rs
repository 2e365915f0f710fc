//! Commit against flip on hardware: the half of the protocol that loom cannot model
//! (design/ap.md `.barrier.hardware`).
//!
//! Each round one thread commits an object and another flips its buffer at the same
//! time. Lost would be: the commit stands, and the flip did not see the object.
//! `TRIPOINT_ROUNDS` sets the number of rounds. Optimised code comes far closer to
//! the window than a debug build, whose controls lose a thousand times less:
//!
//! ```text
//! TRIPOINT_ROUNDS=1000000 cargo test --release -p tripoint-arena-vm --test barrier_stress -- --nocapture
//! ```
#![cfg(target_os = "linux")]

use core::hint;
use core::ptr::without_provenance_mut;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use tripoint_ap::{Buffer, Owner};
use tripoint_arena_vm::Membarrier;
use tripoint_core::primitive::{compiler_fence, fence};
use tripoint_core::{BarrierPair, BufferKind, RankSet, SymmetricFence};

/// The rounds of a pair that must lose nothing, unless it is told otherwise.
const ROUNDS: usize = 50_000;
/// Rounds after which a control that has lost nothing is given up.
const CONTROL_ROUNDS_MAX: usize = 40 * ROUNDS;
/// The size of an object, in bytes. Addresses are only compared.
const OBJECT: usize = 16;
const BASE: usize = 0x1000;

/// Held by a test that needs both cores.
static TWO_CORES: Mutex<()> = Mutex::new(());

fn rounds() -> usize {
    std::env::var("TRIPOINT_ROUNDS")
        .map_or(ROUNDS, |rounds| rounds.parse().expect("TRIPOINT_ROUNDS is a number"))
}

/// Waits until `done`, without a clock.
fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        if !(0..20_000).any(|_| {
            hint::spin_loop();
            done()
        }) {
            thread::yield_now();
        }
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

/// Races commits against flips; how many objects were lost.
fn race<B: BarrierPair>(rounds: usize, barrier: B) -> usize {
    let _one_at_a_time = TWO_CORES.lock().unwrap_or_else(PoisonError::into_inner);
    let buffer = Buffer::new(BufferKind::Mutator, RankSet::EXACT);
    // SAFETY: the only owner of this buffer.
    let mut owner = unsafe { Owner::new(&buffer) };
    let limit = without_provenance_mut(BASE + rounds * OBJECT);
    owner.attach(without_provenance_mut(BASE), without_provenance_mut(BASE), limit);
    let (begun, flipped, seen) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut cold = Cold::new();
    let mut lost = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                wait_until(|| begun.load(Ordering::Acquire) >= round);
                (0..round % 8).for_each(|_| hint::spin_loop());
                // SAFETY: the pair that the owner below commits with; the controls'
                // pairs are wrong on purpose.
                let limit = unsafe { buffer.flip(barrier) };
                seen.store(limit.addr(), Ordering::Relaxed);
                flipped.store(round, Ordering::Release);
            }
        });
        for round in 1..=rounds {
            owner.rearm(limit, &mut |_| {});
            let object = owner.init();
            let end = object.wrapping_add(OBJECT);
            begun.store(round, Ordering::Release);
            (0..round % 16).for_each(|_| hint::spin_loop());
            cold.fill_store_buffer();
            let stands = owner.commit(object, end, barrier);
            wait_until(|| flipped.load(Ordering::Acquire) == round);
            lost += usize::from(stands && seen.load(Ordering::Relaxed) < end.addr());
        }
    });
    lost
}

fn assert_loses_nothing<B: BarrierPair>(barrier: B) {
    let (rounds, lost) = (rounds(), race(rounds(), barrier));
    println!("{barrier:?}: {rounds} rounds, {lost} objects lost");
    assert_eq!(lost, 0);
}

/// Races a broken pair until it has lost an object.
fn assert_loses<B: BarrierPair>(barrier: B) {
    let (mut raced, mut lost) = (0, 0);
    while raced < rounds() || (lost == 0 && raced < CONTROL_ROUNDS_MAX) {
        lost += race(ROUNDS, barrier);
        raced += ROUNDS;
    }
    println!("{barrier:?}: {raced} rounds, {lost} objects lost");
    assert!(lost > 0, "the race does not find what it is there to find");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "too slow to race unless optimised: cargo test --release")]
fn membarrier_loses_nothing() {
    match Membarrier::register() {
        Ok(barrier) => assert_loses_nothing(barrier),
        Err(_) => println!("skipped: this kernel offers no membarrier"),
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
