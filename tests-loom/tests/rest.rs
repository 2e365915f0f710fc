//! What a thread uses without a lock, used by another thread while the owner is at rest (design/adaptors.md
//! `.cached.rest`): the owner's slot, trips of one limit, and a cell in place of the lists of a cache.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{NoHeavy, NoLight, UnsafeCell, model, thread};
use tripoint_core::internal::{AtomicUsize, Ordering, OwnerSlot, Trips};
use tripoint_core::{BarrierPair, Lock, SymmetricFence};

/// What the owner has: how often it was used, and the words by which it is tripped.
struct Kept {
    uses: UnsafeCell<usize>,
    lock: Lock<()>,
    trips: Trips,
    limit: AtomicUsize,
    slot: OwnerSlot<u8>,
}

// SAFETY: the cell is used as the protocol says, which the models check.
unsafe impl Sync for Kept {}
// SAFETY: the cell is used as the protocol says, which the models check; the rest may be sent.
unsafe impl Send for Kept {}

/// What is done otherwise than in the protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twin {
    None,
    WithoutTrip,
    WithoutLook,
    WithoutLock,
    EmptiedLate,
}

impl Kept {
    fn new() -> Arc<Self> {
        let kept = Self {
            uses: UnsafeCell::new(0),
            lock: Lock::new(()),
            trips: Trips::new(),
            limit: AtomicUsize::new(1),
            slot: OwnerSlot::empty(),
        };
        kept.slot.restore(tests_loom::addr(1));
        Arc::new(kept)
    }

    /// A use of it.
    fn change(&self) {
        // SAFETY: the protocol lets one thread at a time come here.
        self.uses.with_mut(|uses| unsafe { *uses += 1 });
    }

    /// A call of the owner.
    fn call<B: BarrierPair>(&self, barrier: B, observed: &mut usize, twin: Twin) {
        let place = self.slot.get();
        if twin == Twin::EmptiedLate {
            let limit = self.limit.load(Ordering::Relaxed);
            self.slot.take(|| barrier.light());
            return self.go_on(limit, observed, twin, place);
        }
        self.slot.take(|| barrier.light());
        self.go_on(self.limit.load(Ordering::Relaxed), observed, twin, place);
    }

    fn go_on(&self, limit: usize, observed: &mut usize, twin: Twin, place: *mut u8) {
        if limit != 0 {
            self.change();
        } else {
            let guard = (twin != Twin::WithoutLock).then(|| self.lock.lock());
            self.trips.rearm(observed, &self.limit, 1, |_| ());
            self.change();
            drop(guard);
        }
        self.slot.restore(place);
    }

    /// Another thread: uses it if the owner is at rest. Returns whether it was.
    fn use_at_rest<B: BarrierPair>(&self, barrier: B, twin: Twin) -> bool {
        let Some(_guard) = self.lock.try_lock() else { return false };
        if twin != Twin::WithoutTrip {
            self.trips.request([&self.limit]);
        }
        barrier.heavy();
        let is_at_rest = twin == Twin::WithoutLook || self.slot.is_at_rest();
        if is_at_rest {
            self.change();
        }
        is_at_rest
    }
}

/// The owner calls twice while another thread looks once. Each use is counted, and none is at the same time as another.
fn race<B: BarrierPair + 'static>(barrier: B, twin: Twin) {
    model(move || {
        let kept = Kept::new();
        let other = Arc::clone(&kept);
        let looks = thread::spawn(move || usize::from(other.use_at_rest(barrier, twin)));
        let mut observed = 0;
        for _ in 0..2 {
            kept.call(barrier, &mut observed, twin);
        }
        let expected = 2 + looks.join().unwrap();
        // SAFETY: no other thread is left.
        assert_eq!(kept.uses.with(|uses| unsafe { *uses }), expected);
    });
}

#[test]
fn an_owner_at_rest_is_not_disturbed() {
    race(SymmetricFence, Twin::None);
}

/// Two threads look, as they do in turn.
#[test]
fn two_threads_look_in_turn() {
    model(move || {
        let kept = Kept::new();
        let others = [(); 2].map(|()| {
            let other = Arc::clone(&kept);
            thread::spawn(move || usize::from(other.use_at_rest(SymmetricFence, Twin::None)))
        });
        kept.call(SymmetricFence, &mut 0, Twin::None);
        let looks: usize = others.map(|other| other.join().unwrap()).iter().sum();
        // SAFETY: no other thread is left.
        assert_eq!(kept.uses.with(|uses| unsafe { *uses }), 1 + looks);
    });
}

/// Without trips of others the owner never waits.
#[test]
#[should_panic(expected = "Causality violation")]
fn without_a_trip_both_use_it() {
    race(SymmetricFence, Twin::WithoutTrip);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_a_look_at_the_slot_both_use_it() {
    race(SymmetricFence, Twin::WithoutLook);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_the_lock_both_use_it() {
    race(SymmetricFence, Twin::WithoutLock);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_slot_that_is_emptied_after_the_look_at_the_limit_is_too_late() {
    race(SymmetricFence, Twin::EmptiedLate);
}

#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn without_a_light_barrier_both_use_it() {
    race(NoLight, Twin::None);
}

#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn without_a_heavy_barrier_both_use_it() {
    race(NoHeavy, Twin::None);
}
