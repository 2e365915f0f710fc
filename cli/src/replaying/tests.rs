//! Replays that are right, and replays on allocators with flaws.

use core::alloc::{GlobalAlloc as _, Layout};
use core::cell::Cell;
use core::ptr::NonNull;
use std::alloc::System;
use std::sync::Mutex;

use clap::ValueEnum as _;

use super::general::General;
use super::memory::{Memory, Threads};
use super::run::run_on;
use super::worker::Worker;
use super::*;
use crate::synthesizing::tests::history;

fn plan(options: &str, seed: u64) -> Plan {
    Plan::of(&history(options, seed)).unwrap()
}

const SMALL: &str = "--objects 3000 --lifetime 50 --largest 3000 --reallocs 30";

/// (design/cli-traces.md `.req.contents`)
#[test]
fn no_contender_changes_a_byte() {
    for options in [SMALL, "--objects 3000 --threads 7 --turn 3 --foreign 60 --largest 20000 --reallocs 30"] {
        let plan = plan(options, 11);
        for &contender in Contender::value_variants() {
            if contender == Contender::None {
                continue;
            }
            let outcome = run(&plan, contender, Measure::Contents).unwrap();
            assert!(!outcome.is_wrong(), "{contender:?}: {outcome:?}");
        }
    }
}

#[test]
fn every_measure_reports_what_it_is_for() {
    let plan = plan(SMALL, 12);
    for contender in [Contender::CacheTlsf, Contender::System, Contender::None] {
        let time = run(&plan, contender, Measure::Time).unwrap();
        assert!(time.mean.is_some() && time.percentiles.is_none() && time.faults.is_none());
        let latency = run(&plan, contender, Measure::Latency).unwrap();
        let percentiles = latency.percentiles.unwrap();
        assert!(percentiles.is_sorted() && percentiles[5] > 0, "{percentiles:?}");
        assert!(latency.mean.is_none());
    }
    let contents = run(&plan, Contender::Tlsf, Measure::Contents).unwrap();
    assert!(contents.growth.is_some_and(|growth| growth > 0));
    if cfg!(target_os = "linux") {
        assert!(contents.at_peak.is_some() && contents.at_end.is_some() && contents.faults.is_some());
    }
}

/// (design/cli-traces.md `.req.same`)
#[test]
fn threads_do_their_own_steps_in_the_order_of_the_trace() {
    /// Notes which thread of the system did the operations.
    #[derive(Default)]
    struct Notes(Mutex<Vec<(std::thread::ThreadId, usize)>>);

    struct OfThread<'a>(&'a Notes);

    impl OfThread<'_> {
        fn note(&self, size: usize) {
            self.0.0.lock().unwrap().push((std::thread::current().id(), size));
        }
    }

    // SAFETY: the calls are those of the system's allocator.
    unsafe impl Memory for OfThread<'_> {
        fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
            self.note(layout.size());
            General(System).alloc(layout, zeroed)
        }

        unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
            self.note(layout.size());
            // SAFETY: the caller's duties are the same.
            unsafe { General(System).free(block, layout) }
        }

        unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
            self.note(to.size());
            // SAFETY: the caller's duties are the same.
            unsafe { General(System).resize(block, from, to) }
        }
    }

    impl Threads for Notes {
        fn on_thread(&self, worker: &mut Worker<'_>) {
            worker.run(&OfThread(self));
        }
    }

    let plan = plan("--objects 2000 --threads 9 --turn 4 --foreign 40", 13);
    let notes = Notes::default();
    run_on(&plan, &notes, Measure::Contents).unwrap();
    let notes = notes.0.into_inner().unwrap();
    assert_eq!(notes.len(), plan.actions.len());
    let mut system_thread = vec![None; plan.turns_of.len()];
    for turn in &plan.turns {
        for index in turn.actions.clone() {
            let size = match plan.actions[index] {
                plan::Action::Alloc { layout, .. } | plan::Action::Free { layout, .. } => layout.size(),
                plan::Action::Resize { to, .. } => to.size(),
            };
            let (thread, noted) = notes[index];
            assert_eq!(noted, size, "step {index}");
            assert_eq!(*system_thread[turn.thread].get_or_insert(thread), thread, "step {index}");
        }
    }
    assert!(system_thread.iter().all(Option::is_some));
}

/// An allocator with a flaw.
struct Flawed(fn(&OfFlawed, Layout, NonNull<u8>));

struct OfFlawed {
    flaw: fn(&Self, Layout, NonNull<u8>),
    last: Cell<Option<(NonNull<u8>, usize)>>,
    count: Cell<usize>,
}

impl OfFlawed {
    /// Whether this is the hundredth time.
    fn is_time(&self) -> bool {
        self.count.set(self.count.get() + 1);
        self.count.get() == 100
    }
}

// SAFETY: the calls are those of the system's allocator; the flaws write inside live blocks only, and between steps, when
// the worker has no reference to them.
unsafe impl Memory for OfFlawed {
    fn alloc(&self, layout: Layout, _zeroed: bool) -> Option<NonNull<u8>> {
        // SAFETY: no layout of a plan is empty.
        let block = NonNull::new(unsafe { System.alloc_zeroed(layout) })?;
        (self.flaw)(self, layout, block);
        self.last.set(Some((block, layout.size())));
        Some(block)
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        self.last.set(self.last.get().filter(|last| last.0 != block));
        // SAFETY: the caller's duties are the same.
        unsafe { General(System).free(block, layout) }
    }

    unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        let moved = self.alloc(to, false)?;
        // SAFETY: both blocks have that many bytes, less one.
        unsafe { block.copy_to_nonoverlapping(moved, from.size().min(to.size()) - LOST.get()) };
        // SAFETY: the caller's duties are the same.
        unsafe { self.free(block, from) };
        Some(moved)
    }
}

std::thread_local! {
    /// Bytes that a resize forgets to move.
    static LOST: Cell<usize> = const { Cell::new(0) };
}

impl Threads for Flawed {
    fn on_thread(&self, worker: &mut Worker<'_>) {
        worker.run(&OfFlawed { flaw: self.0, last: Cell::new(None), count: Cell::new(0) });
    }
}

#[test]
fn flaws_are_found() {
    let plan = plan(SMALL, 14);
    let none: fn(&OfFlawed, Layout, NonNull<u8>) = |_, _, _| {};
    let outcome = run_on(&plan, &Flawed(none), Measure::Contents).unwrap();
    assert!(!outcome.is_wrong(), "the flawed allocator without a flaw: {outcome:?}");

    // One bit of a neighbour.
    let overrun: fn(&OfFlawed, Layout, NonNull<u8>) = |memory, _, _| {
        if memory.is_time()
            && let Some((last, size)) = memory.last.get()
        {
            // SAFETY: the last byte of a block that is live.
            unsafe { *last.add(size - 1).as_ptr() ^= 4 };
        }
    };
    let outcome = run_on(&plan, &Flawed(overrun), Measure::Contents).unwrap();
    assert_eq!(outcome.differences, 1, "{outcome:?}");

    // A block for zeros that has others.
    let dirty: fn(&OfFlawed, Layout, NonNull<u8>) = |_, layout, block| {
        // SAFETY: a byte of the block.
        unsafe { block.add(layout.size() / 2).write(7) };
    };
    let outcome = run_on(&plan, &Flawed(dirty), Measure::Contents).unwrap();
    let zeroed =
        plan.actions.iter().filter(|action| matches!(action, plan::Action::Alloc { zeroed: true, .. }));
    assert_eq!(outcome.differences, zeroed.count() as u64);
    assert!(outcome.first_difference.unwrap().contains("is not zero"));
}

#[test]
fn bytes_that_a_resize_loses_are_found() {
    struct Losing;
    impl Threads for Losing {
        fn on_thread(&self, worker: &mut Worker<'_>) {
            LOST.set(1);
            Flawed(|_, _, _| {}).on_thread(worker);
        }
    }
    let plan = plan(SMALL, 15);
    let outcome = run_on(&plan, &Losing, Measure::Contents).unwrap();
    let resizes = plan.actions.iter().filter(|action| matches!(action, plan::Action::Resize { .. })).count();
    assert!(outcome.differences as usize > resizes / 2, "{outcome:?} of {resizes}");
    assert!(outcome.first_difference.unwrap().contains("after it was resized"));
}

/// A refusal is counted, and what is done to the object afterwards is left out.
#[test]
fn refusals_are_found() {
    struct Refusing;
    // SAFETY: it allocates nothing.
    unsafe impl Memory for Refusing {
        fn alloc(&self, _layout: Layout, _zeroed: bool) -> Option<NonNull<u8>> {
            None
        }

        unsafe fn free(&self, _block: NonNull<u8>, _layout: Layout) {
            unreachable!("nothing was allocated");
        }

        unsafe fn resize(&self, _block: NonNull<u8>, _from: Layout, _to: Layout) -> Option<NonNull<u8>> {
            unreachable!("nothing was allocated");
        }
    }
    impl Threads for Refusing {
        fn on_thread(&self, worker: &mut Worker<'_>) {
            worker.run(self);
        }
    }
    for measure in [Measure::Contents, Measure::Time, Measure::Latency] {
        let outcome = run_on(&plan(SMALL, 16), &Refusing, measure).unwrap();
        assert_eq!((outcome.refused, outcome.differences), (3000, 0));
    }
}

/// The other threads end, too.
#[test]
fn a_thread_that_panics_ends_the_replay() {
    struct Panicking;
    impl Threads for Panicking {
        fn on_thread(&self, worker: &mut Worker<'_>) {
            worker.run(&OfFlawed {
                flaw: |memory, _, _| assert!(!memory.is_time(), "on purpose"),
                last: Cell::new(None),
                count: Cell::new(0),
            });
        }
    }
    let plan = plan("--objects 3000 --threads 5 --turn 3", 17);
    let ended = std::panic::catch_unwind(|| run_on(&plan, &Panicking, Measure::Contents));
    assert!(ended.is_err());
}
