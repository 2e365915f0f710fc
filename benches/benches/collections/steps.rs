//! A collection of a whole heap in steps of a millisecond, while a thread writes in old objects and allocates
//! (design/gc-figures.md `.step`).

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use tripoint::author::{Futex, SymmetricFence};
use tripoint::gc::{Heap, HeapOptions, Link, Step, SweptOptions, TypedObjects};

use crate::Options;
use crate::growth::{chain, forest};
use crate::nodes::{Node, arena};
use crate::times::{Times, microseconds, milliseconds};

/// What a step may take, by the clock.
const BUDGET: Duration = Duration::from_millis(1);
/// References that are written in old objects between two steps.
const WRITES: usize = 100;

pub(crate) fn measure(options: &Options) {
    let most = options.most.unwrap_or(if options.quick { 16 } else { 1024 });
    println!(
        "\n| live, MiB | whole, ms | steps | all steps, ms | step p50, µs | p99, µs | longest, µs | within 1.2 ms |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let sizes = core::iter::successors(Some(if options.quick { 4 } else { 64 }), |mib| Some(mib * 4));
    sizes
        .take_while(|mib| *mib <= most)
        .for_each(|mib| measure_heap(mib << 20, if options.quick { 1 } else { 5 }));
}

fn measure_heap(bytes: usize, rounds: usize) {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Futex) }).unwrap();
    let _parked = heap.park();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    let mut mutator = objects.register().unwrap();
    let trees = mutator.enter(|inside| objects.root(inside, forest(inside, bytes / 2)?)).unwrap();
    let linked = mutator.enter(|inside| objects.root(inside, chain(inside, bytes / 2)?)).unwrap();
    let start = Instant::now();
    let live = black_box(heap.collect(Duration::MAX).unwrap()).kept;
    let whole = start.elapsed();
    let mut steps = Vec::new();
    for _ in 0..rounds {
        loop {
            // The mutator goes down the list of trees and writes there, and what it allocates dies at once.
            mutator.enter(|inside| {
                let mut next = trees.get(inside).ok();
                for _ in 0..WRITES {
                    let Some(node) = next else { break };
                    let tree = node.right.get();
                    let fresh = inside
                        .alloc(Node { left: Link::new(tree), right: Link::default(), word: 0 })
                        .unwrap();
                    node.right.set(inside, fresh);
                    node.right.set(inside, tree);
                    next = node.left.get();
                }
            });
            let start = Instant::now();
            let step = heap.step(Duration::MAX, || start.elapsed() < BUDGET).unwrap();
            steps.push(start.elapsed());
            if matches!(step, Step::Done(_)) {
                break;
            }
        }
    }
    drop(linked);
    let (count, all) = (steps.len(), steps.iter().sum::<Duration>());
    let within = steps.iter().filter(|step| **step <= BUDGET * 6 / 5).count();
    let times = Times::new(steps);
    println!(
        "| {:.0} | {:.1} | {} | {:.1} | {:.0} | {:.0} | {:.0} | {:.1} % |",
        live as f64 / f64::from(1 << 20),
        milliseconds(whole),
        count / rounds,
        milliseconds(all) / rounds as f64,
        microseconds(times.median()),
        microseconds(times.at(990)),
        microseconds(times.at(1000)),
        100.0 * within as f64 / count as f64,
    );
}
