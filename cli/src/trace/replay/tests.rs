//! Replays that are right, and replays on allocators with flaws.

use core::alloc::{GlobalAlloc as _, Layout};
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::alloc::System;
use std::sync::Mutex;

use clap::ValueEnum as _;

use super::general::General;
use super::memory::Memory;
use super::run::run_on;
use super::window::{What, Windows};
use super::worker::{Threads, Worker};
use super::*;
use crate::trace::synthesize::tests::trace;

/// The outline of a trace that these options make. Its file is there as long as the value.
fn outline(options: &str, seed: u64) -> Outlined {
    let file = trace(options, seed);
    let outline = Outline::read(file.path(), u64::MAX, &indicatif::ProgressBar::hidden()).unwrap();
    Outlined { _file: file, outline }
}

struct Outlined {
    _file: tempfile::NamedTempFile,
    outline: Outline,
}

impl core::ops::Deref for Outlined {
    type Target = Outline;

    fn deref(&self) -> &Outline {
        &self.outline
    }
}

impl Outlined {
    /// All operations, with their threads.
    fn operations(&self) -> Vec<(usize, What)> {
        let mut operations = Vec::new();
        let mut windows = Windows::open(self, 100).unwrap();
        let mut window = windows.make().unwrap();
        while windows.fill(&mut window).unwrap() {
            for turn in &window.turns {
                let actions = &window.actions[turn.actions.clone()];
                operations.extend(actions.iter().map(|action| (turn.thread, action.what)));
            }
        }
        operations
    }

    /// How many operations are of this kind.
    fn count(&self, is_it: impl Fn(What) -> bool) -> usize {
        self.operations().iter().filter(|(_, what)| is_it(*what)).count()
    }
}

/// In one order.
fn run_in(order: Order, outline: &Outline, contender: &dyn Threads, measure: Measure) -> Outcome {
    run_on(outline, contender, &|| None, measure, order).unwrap()
}

const SMALL: &str = "--objects 3000 --lifetime 50 --largest 3000 --reallocs 30";

/// (design/cli-traces.md `.req.contents`)
#[test]
fn no_contender_changes_a_byte() {
    for options in [SMALL, "--objects 3000 --threads 7 --turn 3 --foreign 60 --largest 20000 --reallocs 30"] {
        let outline = outline(options, 11);
        for &contender in Contender::value_variants() {
            if contender == Contender::None {
                continue;
            }
            for order in [Order::Strict, Order::Contended] {
                let outcome = run(&outline, contender, Measure::Contents, order).unwrap();
                assert!(!outcome.is_wrong(), "{contender:?}, {order:?}: {outcome:?}");
            }
        }
    }
}

#[test]
fn every_measure_reports_what_it_is_for() {
    let outline = outline(SMALL, 12);
    for (contender, order) in [
        (Contender::CacheTlsf, Order::Strict),
        (Contender::System, Order::Contended),
        (Contender::None, Order::Strict),
        (Contender::None, Order::Contended),
    ] {
        let time = run(&outline, contender, Measure::Time, order).unwrap();
        assert!(time.mean.is_some() && time.percentiles.is_none() && time.faults.is_none());
        let latency = run(&outline, contender, Measure::Latency, order).unwrap();
        let percentiles = latency.percentiles.unwrap();
        assert!(percentiles.is_sorted() && percentiles[5] > 0, "{percentiles:?}");
        assert!(latency.mean.is_none());
    }
    let contents = run(&outline, Contender::Tlsf, Measure::Contents, Order::Strict).unwrap();
    assert!(contents.growth.is_some_and(|growth| growth > 0));
    if cfg!(target_os = "linux") {
        assert!(contents.at_peak.is_some() && contents.at_end.is_some() && contents.faults.is_some());
        let samples = contents.samples;
        assert!(
            samples.len() >= 200 && samples.is_sorted_by_key(|sample| sample.operations),
            "{}",
            samples.len()
        );
        let most = samples.iter().max_by_key(|sample| sample.live).unwrap();
        assert_eq!((most.live, Some(most.resident)), (outline.totals.peak_live, contents.at_peak));
        assert_eq!(samples.last().unwrap().operations, outline.operations);
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
            // SAFETY: the block came from the system with this layout, and is used no more.
            unsafe { General(System).free(block, layout) }
        }

        unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
            self.note(to.size());
            // SAFETY: the block came from the system with the layout `from`. Only what is returned is used.
            unsafe { General(System).resize(block, from, to) }
        }
    }

    impl Threads for Notes {
        fn on_thread(&self, worker: &mut Worker<'_>) {
            worker.run(&OfThread(self));
        }
    }

    let outline = outline("--objects 2000 --threads 9 --turn 4 --foreign 40", 13);
    let notes = Notes::default();
    run_in(Order::Strict, &outline, &notes, Measure::Contents);
    let notes = notes.0.into_inner().unwrap();
    let operations = outline.operations();
    assert_eq!(notes.len(), operations.len());
    let mut system_thread = vec![None; outline.totals.threads as usize];
    for (index, ((thread, what), (system, noted))) in operations.into_iter().zip(notes).enumerate() {
        let size = match what {
            What::Alloc { layout, .. } | What::Free { layout, .. } => layout.size(),
            What::Resize { to, .. } => to.size(),
        };
        assert_eq!(noted, size, "operation {index}");
        assert_eq!(*system_thread[thread].get_or_insert(system), system, "operation {index}");
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
        // SAFETY: no layout of a window is empty.
        let block = NonNull::new(unsafe { System.alloc_zeroed(layout) })?;
        (self.flaw)(self, layout, block);
        self.last.set(Some((block, layout.size())));
        Some(block)
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        self.last.set(self.last.get().filter(|last| last.0 != block));
        // SAFETY: the block came from the system with this layout, and is used no more.
        unsafe { General(System).free(block, layout) }
    }

    unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        let moved = self.alloc(to, false)?;
        // SAFETY: both blocks have that many bytes, less one.
        unsafe { block.copy_to_nonoverlapping(moved, from.size().min(to.size()) - LOST.get()) };
        // SAFETY: the block came from the system with this layout. From here on only the new one is used.
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
    let outline = outline(SMALL, 14);
    let none: fn(&OfFlawed, Layout, NonNull<u8>) = |_, _, _| {};
    let outcome = run_in(Order::Strict, &outline, &Flawed(none), Measure::Contents);
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
    let outcome = run_in(Order::Strict, &outline, &Flawed(overrun), Measure::Contents);
    assert_eq!(outcome.differences, 1, "{outcome:?}");

    // A block for zeros that has others.
    let dirty: fn(&OfFlawed, Layout, NonNull<u8>) = |_, layout, block| {
        // SAFETY: a byte of the block.
        unsafe { block.add(layout.size() / 2).write(7) };
    };
    let outcome = run_in(Order::Strict, &outline, &Flawed(dirty), Measure::Contents);
    let zeroed = outline.count(|what| matches!(what, What::Alloc { zeroed: true, .. }));
    assert_eq!(outcome.differences, zeroed as u64);
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
    let outline = outline(SMALL, 15);
    let outcome = run_in(Order::Strict, &outline, &Losing, Measure::Contents);
    let resizes = outline.count(|what| matches!(what, What::Resize { .. }));
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
        let outcome = run_in(Order::Contended, &outline(SMALL, 16), &Refusing, measure);
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
    let outline = outline("--objects 3000 --threads 5 --turn 3", 17);
    for order in [Order::Strict, Order::Contended] {
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
            run_in(order, &outline, &Panicking, Measure::Contents)
        }));
        assert!(ended.is_err(), "{order:?}");
    }
}
