//! Mutators that register against a stop of their heap (design/gc.md `.stop.order`, `.stop.record`).
//!
//! The objects of the heap are a cell: a mutator writes it while it runs, and the thread that stops the
//! heap writes it while it is stopped. If both do at once, the cell panics.
//!
//! Bound: three preemptions, two with three threads and for whole heaps.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::Arc;

use tests_loom::{UnsafeCell, Yield, lend, model, model_bounded, thread, with_arena};
use tripoint_core::internal::{Registry, RegistryNode};
use tripoint_core::{BarrierPair, ClientArena, SymmetricFence};
use tripoint_gc::internal::{Attendance, Place, StopWord, Waiting};
use tripoint_gc::{Heap, HeapOptions};

/// What mutators and stops use.
struct Objects(UnsafeCell<usize>);

// SAFETY: the cell is used by several threads at once only if a model fails, and the cell says so.
unsafe impl Sync for Objects {}
// SAFETY: nothing of it belongs to a thread.
unsafe impl Send for Objects {}

impl Objects {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn use_them(&self) {
        // SAFETY: the value is a number, and uses that meet are what the models look for.
        self.0.with_mut(|objects| unsafe { *objects += 1 });
    }
}

type TestHeap = Heap<'static, &'static ClientArena<'static>>;

/// Runs a model with a heap and its objects.
fn with_heap(run: impl FnOnce(&'static TestHeap, &Arc<Objects>)) {
    with_arena(|arena| {
        let heap =
            Heap::create(arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
        // SAFETY: the threads of a model have ended when it ends.
        unsafe { lend(Box::new(heap), |heap| run(heap, &Arc::new(Objects::new()))) };
    });
}

/// Registers, uses the heap and leaves.
fn visit(heap: &'static TestHeap, objects: &Objects) {
    let mutator = heap.register().unwrap();
    objects.use_them();
    drop(mutator);
}

/// Stops the heap on a thread of its own.
fn stop(heap: &'static TestHeap, objects: &Arc<Objects>) -> thread::JoinHandle<()> {
    let objects = Arc::clone(objects);
    thread::spawn(move || {
        let stopped = heap.stop(Duration::MAX).unwrap();
        objects.use_them();
        drop(stopped);
    })
}

#[test]
fn a_mutator_that_registers_is_waited_for_or_waits() {
    model_bounded(2, || {
        with_heap(|heap, objects| {
            let stopper = stop(heap, objects);
            visit(heap, objects);
            stopper.join().unwrap();
        });
    });
}

/// It takes the record that another left, which is in the list already.
#[test]
fn a_mutator_that_takes_a_record_over_is_waited_for_or_waits() {
    model_bounded(2, || {
        with_heap(|heap, objects| {
            visit(heap, objects);
            let stopper = stop(heap, objects);
            visit(heap, objects);
            stopper.join().unwrap();
        });
    });
}

/// A record, as a heap has it.
#[repr(C)]
struct Record {
    node: RegistryNode,
    attendance: Attendance,
}

/// The words of a heap, of which two mutators are not registered yet.
struct Model {
    word: StopWord,
    list: Registry,
    records: [Record; 2],
    objects: Objects,
}

impl Model {
    fn new() -> Self {
        let record =
            |_| Record { node: RegistryNode::new(Layout::new::<Record>()), attendance: Attendance::new() };
        let records = [0, 1].map(record);
        Self { word: StopWord::new(), list: Registry::new(), records, objects: Objects::new() }
    }

    fn waiting(&self) -> Waiting<'_, SymmetricFence> {
        Waiting { word: &self.word, barrier: SymmetricFence, parking: &Yield }
    }

    /// Puts a record into the list.
    fn push(&self, record: usize) {
        // SAFETY: the record is in no list, and stays in place as long as the model, which drops the list first.
        unsafe { self.list.push(NonNull::from(&self.records[record]).cast()) };
    }

    fn is_any_running(&self) -> Option<()> {
        self.list.iter().find_map(|node| {
            // SAFETY: all nodes of the list begin records of the model, which are only ever borrowed shared.
            let record = unsafe { node.cast::<Record>().as_ref() };
            record.attendance.is_running().then_some(())
        })
    }

    /// Stops the heap once, as a heap does it.
    fn stop(&self) {
        assert!(self.word.want());
        SymmetricFence.heavy();
        assert!(self.word.wait_for_all(&Yield, Duration::MAX, || self.is_any_running()).is_ok());
        self.objects.use_them();
        self.word.end(&Yield);
    }
}

/// Mutators that register in some way, against a stop.
fn race(mutators: usize, register: fn(&Model, usize)) {
    // SAFETY: the threads have ended when the model ends.
    unsafe {
        lend(Box::new(Model::new()), |model| {
            let model: &'static Model = model;
            let visit = move |record: usize| {
                register(model, record);
                model.objects.use_them();
                model.records[record].attendance.leave(Place::Away, model.waiting());
            };
            let stopper = thread::spawn(|| model.stop());
            let other = (mutators > 1).then(|| thread::spawn(move || register_alone(model, register)));
            visit(0);
            other.into_iter().for_each(|other| other.join().unwrap());
            stopper.join().unwrap();
        });
    }
}

/// The second of two mutators uses nothing: they may run at the same time.
fn register_alone(model: &Model, register: fn(&Model, usize)) {
    register(model, 1);
    model.records[1].attendance.leave(Place::Away, model.waiting());
}

/// As a heap does it: the record is in the list before its mutator runs.
fn push_then_run(model: &Model, record: usize) {
    model.push(record);
    model.records[record].attendance.come_back(model.waiting());
}

#[test]
fn a_record_is_in_the_list_before_its_mutator_runs() {
    model(|| race(1, push_then_run));
    model_bounded(2, || race(2, push_then_run));
}

/// The stop that it looks for begins after it looked, and does not find its record.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutator_that_runs_before_it_is_in_the_list_is_missed() {
    model(|| {
        race(1, |model, record| {
            model.records[record].attendance.come_back(model.waiting());
            model.push(record);
        });
    });
}

/// The stop has walked the list by then.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_new_mutator_that_does_not_look_for_a_stop_runs_into_it() {
    model(|| {
        race(1, |model, record| {
            model.push(record);
            model.records[record].attendance.go(Place::Running);
        });
    });
}
