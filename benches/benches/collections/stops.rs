//! The time to stop: from the call to when all mutators have given way. (design/gc-figures.md `.stop`.)
//!
//! Two threads allocate objects of 32 bytes as fast as they can. Either one of them stops the other, or a third thread,
//! which otherwise sleeps, stops both. In each stop the garbage is collected, so a mutator begins with an empty buffer.
//! The next stop begins when all threads have allocated since: one that has not gone on yet has nothing to stop.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use tripoint::author::{BarrierPair, Futex, Membarrier, Parking, Spinning, SymmetricFence};
use tripoint::gc::{Ams, Heap, HeapOptions, Mutator, MutatorBuffer, SweptOptions, TypedObjects};
use tripoint::{AllocationPoint, BufferKind, Error};

use crate::Options;
use crate::nodes::{CELL, Cells, Leaf, Vm, arena};
use crate::times::{Times, microseconds};

type Cell = [usize; CELL];
type Pool<'h, B> = Ams<'h, Vm<'h>, B, Cells>;
type Point<'p, 'h, B> = AllocationPoint<'p, Pool<'h, B>>;

/// What a thread allocates between two stops of its own, or in a call of `enter`.
const OBJECTS: usize = 4096;
/// How long a third thread sleeps between two stops.
const SLEEP: Duration = Duration::from_micros(100);

/// Who stops the heap.
#[derive(Clone, Copy)]
enum By {
    /// One of the two threads.
    Mutator,
    /// A third thread.
    Third,
}

pub(crate) fn measure(options: &Options) {
    let stops = if options.quick { 20 } else { 10_000 };
    println!("\n| time to stop two threads that allocate, µs | p50 | p90 | p99 | p99.9 | longest |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (by, whose) in [(By::Mutator, "one stops the other"), (By::Third, "a third stops both")] {
        let row = |name: &str, times: Times| {
            let [p50, p90, p99, p999, most] =
                [500, 900, 990, 999, 1000].map(|part| microseconds(times.at(part)));
            println!("| {whose}, {name} | {p50:.1} | {p90:.1} | {p99:.1} | {p999:.1} | {most:.1} |");
        };
        // A spinning thread that stops two others takes the processor of one of them.
        if matches!(by, By::Mutator) {
            row("points, fence, spinning", points(by, SymmetricFence, &Spinning, stops));
            row("which polls and does not allocate, fence, futex", polls(SymmetricFence, &Futex, stops));
        }
        row("points, fence, futex", points(by, SymmetricFence, &Futex, stops));
        if let Ok(membarrier) = Membarrier::register() {
            row("points, membarrier, futex", points(by, membarrier, &Futex, stops));
        }
        row("typed, fence, futex", typed(by, SymmetricFence, &Futex, stops));
    }
}

/// The threads that are stopped, and how often each has filled since it began.
#[derive(Default)]
struct Others {
    has_ended: AtomicBool,
    fills: [AtomicUsize; 2],
}

impl Others {
    /// Calls `fill` until this is dropped.
    fn run(&self, thread: usize, mut fill: impl FnMut()) {
        while !self.has_ended.load(Ordering::Relaxed) {
            fill();
            self.fills[thread].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls `between` until `count` of them have filled, and then `time_one`, so often. Returns the times.
    fn stop(
        &self,
        count: usize,
        stops: usize,
        mut between: impl FnMut(),
        mut time_one: impl FnMut() -> Duration,
    ) -> Times {
        let fills = || self.fills.each_ref().map(|fills| fills.load(Ordering::Relaxed));
        let mut time = || {
            let before = fills();
            while fills().iter().zip(before).take(count).any(|(now, before)| *now == before) {
                between();
            }
            time_one()
        };
        Times::new((0..stops).map(|_| time()).collect())
    }
}

/// Ends the other threads, also if this one unwinds.
struct Ends<'a>(&'a Others);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Release);
    }
}

fn points<B: BarrierPair>(by: By, barrier: B, parking: &dyn Parking, stops: usize) -> Times {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions { barrier, parking: Some(parking) }).unwrap();
    let _parked = heap.park();
    let pool = Pool::create(&heap, Cells, SweptOptions::default()).unwrap();
    let others = Others::default();
    let allocate = |thread| {
        let mutator = heap.register().unwrap();
        let mut point = attend(&pool, &mutator);
        others.run(thread, || fill(&mut point));
        drop(point);
    };
    thread::scope(|scope| {
        let _ends = Ends(&others);
        scope.spawn(|| allocate(0));
        match by {
            By::Mutator => {
                let mut mutator = heap.register().unwrap();
                let mut point = attend(&pool, &mutator);
                let time_one = || {
                    let start = Instant::now();
                    let mut stopped = mutator.stop(Duration::MAX).unwrap();
                    let time = start.elapsed();
                    stopped.collect();
                    time
                };
                others.stop(1, stops, || fill(&mut point), time_one)
            }
            By::Third => {
                scope.spawn(|| allocate(1));
                let time_one = || {
                    let start = Instant::now();
                    let mut stopped = heap.stop(Duration::MAX).unwrap();
                    let time = start.elapsed();
                    stopped.collect();
                    time
                };
                others.stop(2, stops, || thread::sleep(SLEEP), time_one)
            }
        }
    })
}

/// One thread stops the other, which has no buffer: what a stop takes without that.
fn polls<B: BarrierPair>(barrier: B, parking: &dyn Parking, stops: usize) -> Times {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions { barrier, parking: Some(parking) }).unwrap();
    let others = Others::default();
    thread::scope(|scope| {
        let _ends = Ends(&others);
        scope.spawn(|| {
            let mut mutator = heap.register().unwrap();
            others.run(0, || (0..OBJECTS).for_each(|_| mutator.poll()));
        });
        let mut mutator = heap.register().unwrap();
        let time_one = || {
            let start = Instant::now();
            let _stopped = mutator.stop(Duration::MAX).unwrap();
            start.elapsed()
        };
        others.stop(1, stops, core::hint::spin_loop, time_one)
    })
}

fn attend<'p, 'h, B: BarrierPair>(
    pool: &'p Pool<'h, B>,
    mutator: &Mutator<'h, Vm<'h>, B>,
) -> Point<'p, 'h, B> {
    AllocationPoint::create_in(pool, BufferKind::Mutator, (), |buffer: &MutatorBuffer| {
        // SAFETY: the point is used on the thread of its mutator alone, and only while that is running.
        unsafe { buffer.attend(mutator) };
    })
    .unwrap()
}

fn fill<B: BarrierPair>(point: &mut Point<'_, '_, B>) {
    for _ in 0..OBJECTS {
        // SAFETY: four words, of which the references are null.
        black_box(unsafe { point.alloc_with(|| -> Cell { [0; CELL] }) }.unwrap());
    }
}

fn typed<B: BarrierPair>(by: By, barrier: B, parking: &dyn Parking, stops: usize) -> Times {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions { barrier, parking: Some(parking) }).unwrap();
    let _parked = heap.park();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    let others = Others::default();
    let allocate = |thread| {
        let mut mutator = objects.register().unwrap();
        others.run(thread, || {
            mutator
                .enter(|inside| {
                    for round in 0..OBJECTS as u64 {
                        black_box(inside.alloc(Leaf { words: [round; 3] })?);
                        if inside.wants_stop() {
                            break;
                        }
                    }
                    Ok::<(), Error>(())
                })
                .unwrap();
        });
    };
    thread::scope(|scope| {
        let _ends = Ends(&others);
        scope.spawn(|| allocate(0));
        let time_one = || {
            let start = Instant::now();
            let mut stopped = heap.stop(Duration::MAX).unwrap();
            let time = start.elapsed();
            stopped.collect();
            time
        };
        match by {
            By::Mutator => {
                let mut mutator = objects.register().unwrap();
                let mut fill = || {
                    mutator.enter(|inside| {
                        for round in 0..OBJECTS as u64 {
                            black_box(inside.alloc(Leaf { words: [round; 3] }).unwrap());
                        }
                    });
                };
                others.stop(1, stops, &mut fill, time_one)
            }
            By::Third => {
                scope.spawn(|| allocate(1));
                others.stop(2, stops, || thread::sleep(SLEEP), time_one)
            }
        }
    })
}
