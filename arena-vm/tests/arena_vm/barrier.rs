//! The asymmetric barrier pair.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tripoint_arena_vm::Membarrier;
use tripoint_core::BarrierPair;
use tripoint_oracle::Party;

#[test]
fn the_pair_takes_no_space() {
    assert_eq!(size_of::<Membarrier>(), 0);
}

#[test]
fn registering_works_and_may_be_repeated() {
    let pair = Membarrier::register().unwrap();
    pair.light();
    pair.heavy();
    Membarrier::register().unwrap().heavy();
}

/// Dekker's algorithm, many rounds: at least one side must see the other.
#[test]
fn one_side_sees_the_other() {
    const ROUNDS: usize = 20_000;
    let pair = Membarrier::register().unwrap();
    let (x, y) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let party = Party::new();
    let (light, heavy) = thread::scope(|scope| {
        let _member = party.enter();
        let light = scope.spawn(|| {
            let _member = party.enter();
            party.meet(2);
            let mut seen = Vec::with_capacity(ROUNDS);
            for round in 1..=ROUNDS {
                x.store(round, Ordering::Relaxed);
                pair.light();
                seen.push(y.load(Ordering::Relaxed));
                party.wait_until(|| y.load(Ordering::Acquire) >= round);
            }
            seen
        });
        let heavy = scope.spawn(|| {
            let _member = party.enter();
            party.meet(2);
            let mut seen = Vec::with_capacity(ROUNDS);
            for round in 1..=ROUNDS {
                y.store(round, Ordering::Relaxed);
                pair.heavy();
                seen.push(x.load(Ordering::Relaxed));
                party.wait_until(|| x.load(Ordering::Acquire) >= round);
            }
            seen
        });
        (light.join().unwrap(), heavy.join().unwrap())
    });
    let missed = (1..=ROUNDS).filter(|&round| light[round - 1] < round && heavy[round - 1] < round).count();
    assert_eq!(missed, 0);
}
