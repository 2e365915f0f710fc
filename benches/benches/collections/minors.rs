//! Collections of the youngest generation, of which a tenth is kept, beside older objects. (design/gc-figures.md
//! `.minors`.)
//!
//! Between two of them a thread allocates so much, keeps each tenth object in a list, and stores a reference to a new object
//! in each of some old ones. What was kept is dropped before the next one.

use core::time::Duration;
use std::time::Instant;

use tripoint::gc::{GENERATIONS, Heap, HeapOptions, Link, Rooted, SweptOptions, TypedMutator, TypedObjects};

use crate::Options;
use crate::nodes::{Node, NodeRef, Vm, arena, tree};
use crate::times::{Times, microseconds};

/// The bytes of an object.
const OBJECT: usize = 32;
/// The bytes that are allocated between two collections.
const NURSERY: usize = 1 << 20;

pub(crate) fn measure(options: &Options) {
    let most = options.most.unwrap_or(if options.quick { 1 } else { 256 });
    let rounds = if options.quick { 20 } else { 2000 };
    println!("\n| a minor collection of 1 MiB, a tenth kept, µs | p50 | p99 | p99.9 | longest | cards |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (old, writes) in [(0, 0), (1, 0), (1, 100), (16, 100), (256, 100), (256, 1000)] {
        if old <= most {
            let (times, cards) = minors(old << 20, writes, rounds);
            let [p50, p99, p999, longest] = [500, 990, 999, 1000].map(|part| microseconds(times.at(part)));
            let name = format!("{old} MiB are old, {writes} old objects written");
            println!("| {name} | {p50:.0} | {p99:.0} | {p999:.0} | {longest:.0} | {cards} |");
        }
    }
}

/// The times of some collections beside that many old bytes, and the cards that the last one looked at.
fn minors(old: usize, writes: usize, rounds: usize) -> (Times, usize) {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    let _parked = heap.park();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    let mut mutator = objects.register().unwrap();
    let depth = (old / OBJECT).checked_ilog2().unwrap_or(1) - 1;
    let tree: Rooted<'_, Node<'static>> =
        mutator.enter(|inside| objects.root(inside, tree(inside, depth).unwrap()).unwrap());
    // To the last generation.
    for _ in 0..GENERATIONS {
        mutator.collect(Duration::MAX).unwrap();
    }
    let (mut times, mut cards) = (Vec::with_capacity(rounds), 0);
    for round in 0..rounds {
        let kept = fill(&objects, &mut mutator, &tree, depth, writes, round);
        let start = Instant::now();
        let found = mutator.collect_up_to(0, Duration::MAX).unwrap();
        times.push(start.elapsed());
        assert!(found.moved >= NURSERY / 10, "{found}");
        cards = found.cards;
        drop(kept);
        if round % 64 == 63 {
            // What was kept is garbage of the second generation.
            mutator.collect_up_to(1, Duration::MAX).unwrap();
        }
    }
    (Times::new(times), cards)
}

/// Allocates, and returns the root of what is kept.
fn fill<'o, 'h>(
    objects: &'o TypedObjects<'h, Vm<'h>>,
    mutator: &mut TypedMutator<'o, 'h, Vm<'h>>,
    tree: &Rooted<'_, Node<'static>>,
    depth: u32,
    writes: usize,
    round: usize,
) -> Rooted<'o, Node<'static>> {
    mutator.enter(|inside| {
        let mut list: Option<NodeRef<'_>> = None;
        for index in 0..NURSERY / OBJECT {
            let is_kept = index.is_multiple_of(10);
            let left = Link::new(list.filter(|_| is_kept));
            let node = inside.alloc(Node { left, right: Link::default(), word: index as u64 }).unwrap();
            list = if is_kept { Some(node) } else { list };
        }
        let list = list.unwrap();
        for index in 0..writes {
            // Another leaf each time, by a path of bits that are spread over the whole tree.
            let mut path = (round * writes + index).wrapping_mul(0x9e37_79b9);
            let mut node = tree.get(inside).unwrap();
            for _ in 0..depth {
                let branch = if path.is_multiple_of(2) { &node.left } else { &node.right };
                (node, path) = (branch.get().unwrap(), path / 2);
            }
            node.left.set(inside, list);
        }
        objects.root(inside, list).unwrap()
    })
}
