//! Stops of a heap against mutators that give way and come back (design/gc.md `.stop.order`).
//!
//! The heap is a cell: a mutator writes it while it runs, and the thread that stops the heap writes it
//! while it is stopped. If both do at once, the cell panics.
//!
//! Bound: three preemptions, two with three threads.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::time::Duration;
use std::sync::Arc;

use tests_loom::{
    LIMIT, NoHeavy, NoLight, UnsafeCell, Yield, addr, attach, flippable_buffer, model, model_bounded, thread,
};
use tripoint_ap::internal::Owner;
use tripoint_core::{BarrierPair, SymmetricFence};
use tripoint_gc::internal::{Attendance, Place, StopWord, Waiting};

/// A heap and its mutators, all of them running.
struct Model<const MUTATORS: usize> {
    word: StopWord,
    mutators: [Attendance; MUTATORS],
    objects: UnsafeCell<usize>,
}

// SAFETY: the cell is used by several threads at once only if a model fails, and the cell says so.
unsafe impl<const MUTATORS: usize> Sync for Model<MUTATORS> {}
// SAFETY: nothing of it belongs to a thread.
unsafe impl<const MUTATORS: usize> Send for Model<MUTATORS> {}

impl<const MUTATORS: usize> Model<MUTATORS> {
    fn new() -> Arc<Self> {
        let mutators = core::array::from_fn(|_| Attendance::new());
        mutators.iter().for_each(|mutator: &Attendance| mutator.go(Place::Running));
        Arc::new(Self { word: StopWord::new(), mutators, objects: UnsafeCell::new(0) })
    }

    fn waiting<B>(&self, barrier: B) -> Waiting<'_, B> {
        Waiting { word: &self.word, barrier, parking: &Yield }
    }

    /// Uses the heap, as a mutator that runs or the thread that stopped the heap may.
    fn use_heap(&self) {
        // SAFETY: the value is a number, and uses that meet are what the models look for.
        self.objects.with_mut(|objects| unsafe { *objects += 1 });
    }

    fn is_any_running(&self) -> Option<()> {
        self.mutators.iter().any(Attendance::is_running).then_some(())
    }

    /// Stops the heap once, as a heap does it. Returns whether it did.
    fn stop<B: BarrierPair>(&self, barrier: B, patience: Duration) -> bool {
        if !self.word.want() {
            return false;
        }
        barrier.heavy();
        let all_gave_way = self.word.wait_for_all(&Yield, patience, || self.is_any_running()).is_ok();
        if all_gave_way {
            self.use_heap();
        }
        self.word.end(&Yield);
        all_gave_way
    }
}

/// What a mutator does.
type Mutate<B> = fn(&Model<1>, Waiting<'_, B>);

/// A mutator against a stop.
fn race<B: BarrierPair + 'static>(barrier: B, patience: Duration, mutate: Mutate<B>) {
    let model = Model::<1>::new();
    let stopper = {
        let model = Arc::clone(&model);
        thread::spawn(move || model.stop(barrier, patience))
    };
    mutate(&model, model.waiting(barrier));
    model.mutators[0].leave(Place::Away, model.waiting(barrier));
    let stopped = stopper.join().unwrap();
    assert!(stopped || patience.is_zero(), "a stop with all patience was given up");
}

/// A poll between two uses.
fn poll<B: BarrierPair>(model: &Model<1>, heap: Waiting<'_, B>) {
    model.use_heap();
    if heap.word.is_wanted() {
        model.mutators[0].stop(heap);
    }
    model.use_heap();
}

/// Away between two uses.
fn away<B: BarrierPair>(model: &Model<1>, heap: Waiting<'_, B>) {
    model.use_heap();
    model.mutators[0].leave(Place::Away, heap);
    model.mutators[0].come_back(heap);
    model.use_heap();
}

#[test]
fn a_mutator_that_polls_is_out_of_the_way() {
    model(|| race(SymmetricFence, Duration::MAX, poll));
}

#[test]
fn a_mutator_that_is_away_comes_back_after_the_stop() {
    model(|| race(SymmetricFence, Duration::MAX, away));
}

/// (design/gc.md `.req.postpone`)
#[test]
fn a_postponed_stop_leaves_all_mutators_running() {
    model(|| race(SymmetricFence, Duration::ZERO, poll));
    model(|| race(SymmetricFence, Duration::ZERO, away));
}

/// Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn without_the_light_barrier_mutators_come_back_during_a_stop() {
    model(|| race(NoLight, Duration::MAX, away));
}

/// Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn without_the_heavy_barrier_mutators_come_back_during_a_stop() {
    model(|| race(NoHeavy, Duration::MAX, away));
}

/// Looks whether a stop is wanted, and then runs.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutator_that_looks_before_it_runs_comes_back_during_a_stop() {
    model(|| {
        race(SymmetricFence, Duration::MAX, |model, heap| {
            model.mutators[0].leave(Place::Away, heap);
            if heap.word.turn().is_none() {
                model.mutators[0].go(Place::Running);
                model.use_heap();
            }
        });
    });
}

/// Goes on after a stop as if it had been the only one.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutator_that_does_not_look_again_runs_into_the_next_stop() {
    model(|| {
        let model = Model::<1>::new();
        let stopper = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.stop(SymmetricFence, Duration::MAX);
                model.stop(SymmetricFence, Duration::MAX);
            })
        };
        let (heap, own) = (model.waiting(SymmetricFence), &model.mutators[0]);
        own.leave(Place::Stopped, heap);
        if let Some(turn) = heap.word.turn() {
            let _ = heap.word.wait_for_end(turn, &Yield, Duration::MAX);
        }
        own.go(Place::Running);
        model.use_heap();
        own.leave(Place::Away, heap);
        stopper.join().unwrap();
    });
}

/// Two stops, one after the other, against one mutator.
#[test]
fn a_mutator_is_out_of_the_way_of_the_next_stop_too() {
    model_bounded(2, || {
        let model = Model::<1>::new();
        let stopper = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                assert!(model.stop(SymmetricFence, Duration::MAX));
                assert!(model.stop(SymmetricFence, Duration::MAX));
            })
        };
        poll(&model, model.waiting(SymmetricFence));
        model.mutators[0].leave(Place::Away, model.waiting(SymmetricFence));
        stopper.join().unwrap();
    });
}

/// Of two threads that want a stop, the second gives way, being a mutator itself, and then has its turn.
#[test]
fn two_threads_stop_the_heap_one_after_the_other() {
    model_bounded(2, || {
        let model = Model::<2>::new();
        let stop = |model: &Model<2>, own: usize| {
            let heap = model.waiting(SymmetricFence);
            model.use_nothing_until_stopped(own, heap);
        };
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || stop(&model, 1))
        };
        stop(&model, 0);
        other.join().unwrap();
    });
}

impl Model<2> {
    /// Stops the heap, for the mutator `own`, and then runs.
    fn use_nothing_until_stopped(&self, own: usize, heap: Waiting<'_, SymmetricFence>) {
        let own = &self.mutators[own];
        own.leave(Place::Stopped, heap);
        while !self.stop(heap.barrier, Duration::MAX) {
            if let Some(turn) = heap.word.turn() {
                let _ = heap.word.wait_for_end(turn, heap.parking, Duration::MAX);
            }
        }
        own.come_back(heap);
        own.leave(Place::Away, heap);
    }
}

/// An owner that is in its slow path while a stop begins and trips it.
///
/// (design/gc.md `.stop.rearm`)
fn rearm(heed: fn(&mut Owner<'_>, &StopWord)) {
    let buffer = flippable_buffer();
    let word = Arc::new(StopWord::new());
    // SAFETY: this is the only owner of the buffer.
    attach(&mut unsafe { Owner::new(&buffer) });
    let stopper = {
        let (buffer, word) = (Arc::clone(&buffer), Arc::clone(&word));
        thread::spawn(move || {
            assert!(word.want());
            buffer.trip();
        })
    };
    // SAFETY: the other owner is gone.
    let mut owner = unsafe { Owner::new(&buffer) };
    owner.observe_trips(&mut |_| {});
    let gave_way = word.is_wanted();
    owner.rearm(addr(LIMIT), &mut |_| {});
    heed(&mut owner, &word);
    stopper.join().unwrap();
    assert!(gave_way || owner.limit().is_null(), "the owner goes on and does not know of the stop");
}

#[test]
fn an_owner_that_is_tripped_while_it_rearms_gives_way_at_the_next_reserve() {
    model(|| rearm(|owner, word| owner.heed(|| word.is_wanted())));
}

#[test]
#[should_panic(expected = "the owner goes on and does not know of the stop")]
fn an_owner_that_does_not_look_after_it_rearmed_runs_on() {
    model(|| rearm(|_, _| ()));
}
