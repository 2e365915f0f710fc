//! A heap that is parked against a collection that is about to begin (design/gc.md `.policy.park`), and allocation points
//! that a stop trips: whole heaps, with a pool that has a segment. The first fill of an allocation point collects if the heap is
//! under stress.
//!
//! Bound: two preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;

use tests_loom::{Yield, lend, model_bounded, thread, with_arena};
use tripoint_ap::{AllocationPoint, BufferMode};
use tripoint_core::{Block, BufferKind, ClientArena, SymmetricFence};
use tripoint_gc::{
    Format, Heap, HeapOptions, Leaf, Mutator, MutatorBuffer, Policy, Scan, Swept, SweptOptions,
};

/// Objects of a word.
struct Words;

// SAFETY: each object is a word, and none has references.
unsafe impl Format for Words {
    unsafe fn skip(&self, _object: NonNull<u8>) -> usize {
        size_of::<usize>()
    }

    unsafe fn scan(&self, _objects: Block, _scan: &mut Scan<'_>) {}
}

type Arena = &'static ClientArena<'static>;
type TestHeap = Heap<'static, Arena>;
type Pool = Swept<'static, Arena, SymmetricFence, Words, Leaf>;
type TestMutator = Mutator<'static, Arena, SymmetricFence>;

/// Runs a model with a heap and a pool.
fn with_pool(run: impl FnOnce(&'static TestHeap, &'static Pool)) {
    with_arena(|arena| {
        let heap =
            Heap::create(arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
        heap.set_policy(Policy { patience: Duration::MAX, ..Policy::default() });
        let lend_heap = |heap: &'static mut TestHeap| {
            let heap: &'static TestHeap = heap;
            let pool = Swept::create(heap, Words, SweptOptions { segment_size: 4 << 10 }).unwrap();
            // SAFETY: the threads of a model have ended when it ends.
            unsafe { lend(Box::new(pool), |pool| run(heap, pool)) };
        };
        // SAFETY: the threads of a model have ended when it ends, and the pool is dropped.
        unsafe { lend(Box::new(heap), lend_heap) };
    });
}

/// Allocates an object that nothing refers to. Under stress, collects before that, unless the heap is parked. Returns the point, which the mutator
/// outlives.
fn allocate(mutator: &TestMutator, pool: &'static Pool) -> AllocationPoint<'static, Pool> {
    // SAFETY: this thread has the mutator, and uses the point while that is running.
    let adjust = |buffer: &MutatorBuffer| unsafe { buffer.attend(mutator) };
    let mut point = AllocationPoint::create_in(pool, BufferKind::Mutator, (), adjust).unwrap();
    drop(point.reserve(Layout::new::<usize>()).unwrap());
    point
}

/// A mutator that parks the heap against a thread that allocates. `park` returns how many collections there were when it
/// did.
fn race(park: fn(&mut TestMutator) -> u64) {
    with_pool(|heap, pool| {
        // A collection is always due. Without stress none is before something is new.
        core::mem::forget(heap.stress());
        let mut mutator = heap.register().unwrap();
        // The pool has a segment before the other thread begins, which a collection frees.
        drop(allocate(&mutator, pool));
        let allocator = thread::spawn(move || drop(allocate(&heap.register().unwrap(), pool)));
        let before = park(&mut mutator);
        mutator.poll();
        let after = heap.counts().collections.get();
        assert_eq!(after, before, "a collection began though the heap was parked");
        drop(mutator);
        allocator.join().unwrap();
    });
}

#[test]
fn no_collection_begins_while_a_running_mutator_has_parked_the_heap() {
    model_bounded(2, || {
        race(|mutator| {
            core::mem::forget(mutator.heap().park());
            mutator.heap().counts().collections.get()
        });
    });
}

/// A collection that has looked whether the heap is parked begins afterwards.
#[test]
#[should_panic(expected = "a collection began though the heap was parked")]
fn a_mutator_that_is_away_parks_the_heap_too_late() {
    model_bounded(2, || {
        race(|mutator| {
            let heap = mutator.heap();
            mutator.away(|| {
                core::mem::forget(heap.park());
                heap.counts().collections.get()
            })
        });
    });
}

/// A mutator that allocates and does not poll, against a thread that stops the heap and has no patience: from then on, the
/// mutator gives way at its next reserve.
fn trip(stop: fn(&TestHeap)) {
    with_pool(|heap, pool| {
        let mutator = heap.register().unwrap();
        let point = allocate(&mutator, pool);
        let is_trapped = || point.buffer().snapshot().unwrap().mode.contains(BufferMode::TRAPPED);
        assert!(!is_trapped(), "the point is tripped before the stop");
        thread::spawn(move || stop(heap)).join().unwrap();
        assert!(is_trapped(), "the mutator goes on and does not know of the stop");
        drop(point);
    });
}

#[test]
fn a_stop_trips_the_points_of_the_heaps_pools() {
    model_bounded(2, || {
        trip(|heap| {
            let stopped = heap.stop(Duration::ZERO);
            assert!(stopped.is_err(), "the mutator is running");
        });
    });
}

/// The twin: a thread that looks whether there is a stop, and begins none.
#[test]
#[should_panic(expected = "the mutator goes on and does not know of the stop")]
fn a_point_that_no_stop_trips_goes_on() {
    model_bounded(2, || trip(|heap| assert!(!heap.wants_stop())));
}
