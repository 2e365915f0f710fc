//! How everything grows with the heap: heaps of 16 MiB, 32 MiB and so on, in which all is live.
//! (design/gc-figures.md `.growth`.)
//!
//! Half of a heap are trees of 8,191 nodes in a list. The other half is a chain in which each node refers to the one
//! before, and to one that is drawn at random from all before: what a trace in order of addresses likes least.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use benches::random::Random;
use tripoint::author::{Futex, SymmetricFence};
use tripoint::gc::{Heap, HeapOptions, Inside, Link, Rooted, SweptOptions, TypedObjects};
use tripoint::{ArenaVmOptions, Error, Result};

use crate::Options;
use crate::chase::{Chase, chase};
use crate::nodes::{Leaf, Node, NodeRef, Vm, arena, arena_with, tree};
use crate::plot::{Line, plot};
use crate::times::{Times, microseconds, milliseconds, time_of};

/// What was measured of a heap.
struct Heaped {
    /// The bytes of live objects, in MiB.
    live: f64,
    /// In milliseconds of processor time.
    fill: f64,
    /// The first collection, in which all objects come to a second place.
    first: f64,
    trees: f64,
    random: f64,
    /// The share of the heap that the first collection could not move.
    refused: f64,
    walk: f64,
    /// Of the trees: half of all.
    free: f64,
    /// In microseconds.
    stop: f64,
    stop_p99: f64,
    /// Reads of as much memory.
    chase: Chase,
}

const NODE: usize = 32;
const DEPTH: u32 = 12;
/// The nodes that the next reference may lead to.
const DRAWN: usize = 1 << 16;

/// In MiB: as much work is done with small heaps as with large ones, up to a number of rounds.
const ROUNDS_OF: usize = 4096;

pub(crate) fn measure(options: &Options) {
    let most = options.most.unwrap_or(if options.quick { 16 } else { 512 });
    println!(
        "\n| live, MiB | fill, ms | first collection, ms | refused, % | half in trees, ms | half at random, ms | ns for an object | chase, ns | read, ns | walk, ms | free half, ms | stop p50, µs | stop p99, µs |"
    );
    println!("|{}", "---:|".repeat(13));
    let mut all = Vec::new();
    let doubled = core::iter::successors(Some(if options.quick { 4 } else { 16 }), |mib| Some(mib * 2));
    for mib in doubled.take_while(|mib| *mib < most).chain([most]) {
        let rounds = if options.quick { 3 } else { (ROUNDS_OF / mib).clamp(1, 7) };
        let mut heaped = heaped(mib << 20, rounds, options);
        // When the heap has returned its memory.
        heaped.chase = chase(mib << 20, options.huge_pages);
        let Heaped { live, fill, first, trees, random, refused, walk, free, stop, stop_p99, .. } = heaped;
        let (an_object, Chase { chased, read }) = (heaped.an_object(), &heaped.chase);
        println!(
            "| {live:.0} | {fill:.1} | {first:.1} | {refused:.0} | {trees:.2} | {random:.2} | {an_object:.1} | {chased:.1} | {read:.1} | {walk:.2} | {free:.2} | {stop:.1} | {stop_p99:.1} |"
        );
        all.push(heaped);
    }
    print_slopes(&all);
    if let Some(file) = &options.plot {
        std::fs::write(file, draw(&all)).unwrap();
    }
}

impl Heaped {
    /// The objects of half of the heap.
    fn half(&self) -> f64 {
        self.live * f64::from(1 << 20) / 2.0 / NODE as f64
    }

    /// What a collection takes for an object of the half at random, in nanoseconds.
    fn an_object(&self) -> f64 {
        self.random * 1e6 / self.half()
    }

    /// What a chase takes for as many words as the half at random has references: two for each object.
    fn chased(&self) -> f64 {
        2.0 * self.half() * self.chase.chased / 1e6
    }
}

/// How much more than linearly the largest heap takes: its time for each byte, divided by that of the smallest.
fn print_slopes(all: &[Heaped]) {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
    let slope = |time: fn(&Heaped) -> f64| (time(last) / last.live) / (time(first) / first.live);
    println!(
        "\ntime for a byte, largest heap over smallest: fill {:.2}, first collection {:.2}, trees {:.2}, random {:.2}, walk {:.2}, free {:.2}",
        slope(|heap| heap.fill),
        slope(|heap| heap.first),
        slope(|heap| heap.trees),
        slope(|heap| heap.random),
        slope(|heap| heap.walk),
        slope(|heap| heap.free),
    );
    println!(
        "time of a read of memory as large: chased {:.2}, read {:.2}",
        last.chase.chased / first.chase.chased,
        last.chase.read / first.chase.read,
    );
    println!("time to stop, largest heap over smallest: {:.2}", last.stop / first.stop);
}

fn heaped(bytes: usize, rounds: usize, options: &Options) -> Heaped {
    let default = ArenaVmOptions::default();
    let arena = arena_with(ArenaVmOptions {
        // A huge page takes a run of grains which are committed together.
        grain: if options.huge_pages { 2 << 20 } else { default.grain },
        huge_pages: options.huge_pages,
        commit_limit: options.limit.map_or(usize::MAX, |mib| mib << 20),
        ..default
    });
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Futex) }).unwrap();
    let _parked = heap.park();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    let mut mutator = objects.register().unwrap();
    let collect = || time_of(|| heap.collect(Duration::MAX).unwrap());
    let median = |time: &dyn Fn() -> Duration| Times::new((0..rounds).map(|_| time()).collect()).median();
    let (mut trees, mut linked) = (None, None);
    let fill = time_of(|| {
        trees = Some(mutator.enter(|inside| objects.root(inside, forest(inside, bytes / 2)?)).unwrap());
        linked = Some(mutator.enter(|inside| objects.root(inside, chain(inside, bytes / 2)?)).unwrap());
    });
    let walk = median(&|| {
        let stopped = heap.stop(Duration::MAX).unwrap();
        time_of(|| stopped.census(&mut []).all.objects)
    });
    let first = collect();
    let refused = heap.last_collection().map_or(0.0, |last| last.refused as f64 / last.kept as f64);
    let both = median(&collect);
    let stops = stops(&heap, &objects);
    let live = heap.last_collection().map_or(0, |last| last.kept);
    drop::<Option<Rooted<'_, Node<'_>>>>(linked);
    collect();
    let in_trees = median(&collect);
    drop(trees);
    let free = collect();
    // What is attached is kept.
    assert!(heap.last_collection().is_some_and(|last| last.kept < bytes / 4));
    Heaped {
        live: live as f64 / f64::from(1 << 20),
        fill: milliseconds(fill),
        first: milliseconds(first),
        refused: refused * 100.0,
        trees: milliseconds(in_trees),
        random: milliseconds(both.saturating_sub(in_trees)),
        walk: milliseconds(walk),
        free: milliseconds(free),
        stop: microseconds(stops.median()),
        stop_p99: microseconds(stops.at(990)),
        chase: Chase::default(),
    }
}

/// Collects a heap of one shape once, and does nothing else with it: `benches/instructions` counts the collection.
pub(crate) fn collect_once(shape: &str, bytes: usize) {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    let _parked = heap.park();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    let mut mutator = objects.register().unwrap();
    let make = match shape {
        "trees" => forest,
        "random" => chain,
        _ => panic!("a shape is trees or random"),
    };
    let _root = mutator.enter(|inside| objects.root(inside, make(inside, bytes)?)).unwrap();
    let collection = counted(|| heap.collect(Duration::MAX).unwrap());
    assert!(collection.kept >= bytes);
}

/// Runs a collection in a function of its own, by which callgrind knows it.
#[inline(never)]
fn counted<R>(collect: impl FnOnce() -> R) -> R {
    collect()
}

/// Trees in a list.
pub(crate) fn forest<'g>(inside: &Inside<'g, Vm<'_>>, bytes: usize) -> Result<NodeRef<'g>> {
    let mut list = None;
    for _ in 0..bytes / (NODE << (DEPTH + 1)) {
        let tree = tree(inside, DEPTH)?;
        list = Some(inside.alloc(Node { left: Link::new(list), right: Link::new(Some(tree)), word: 0 })?);
    }
    list.ok_or(Error::Parameter("a forest has a tree"))
}

pub(crate) fn chain<'g>(inside: &Inside<'g, Vm<'_>>, bytes: usize) -> Result<NodeRef<'g>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut drawn: Vec<NodeRef<'g>> = Vec::with_capacity(DRAWN);
    let mut last: Option<NodeRef<'g>> = None;
    for index in 0..bytes / NODE {
        let other = if drawn.is_empty() { None } else { Some(drawn[random.below(drawn.len())]) };
        let node =
            inside.alloc(Node { left: Link::new(last), right: Link::new(other), word: index as u64 })?;
        if drawn.len() < DRAWN {
            drawn.push(node);
        } else if let Some(place) = drawn.get_mut(random.below(index)) {
            // So each node so far is among those that are drawn from with the same probability.
            *place = node;
        }
        last = Some(node);
    }
    last.ok_or(Error::Parameter("a chain has a node"))
}

/// The times of stops while a thread allocates garbage.
fn stops(heap: &Heap<'_, Vm<'_>>, objects: &TypedObjects<'_, Vm<'_>>) -> Times {
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut mutator = objects.register().unwrap();
            while !has_ended.load(Ordering::Relaxed) {
                mutator.enter(|inside| {
                    while !inside.wants_stop() && !has_ended.load(Ordering::Relaxed) {
                        // A thousand objects in 100 µs: what is not collected stays small.
                        black_box(inside.alloc(Leaf { words: [0; 3] }).unwrap());
                        (0..30).for_each(|_| core::hint::spin_loop());
                    }
                });
            }
        });
        let times = (0..1000).map(|_| {
            let wait = Instant::now();
            while wait.elapsed() < Duration::from_micros(50) {}
            let start = Instant::now();
            let stopped = heap.stop(Duration::MAX).unwrap();
            let time = start.elapsed();
            drop(stopped);
            time
        });
        let times = Times::new(times.collect());
        has_ended.store(true, Ordering::Relaxed);
        times
    })
}

fn draw(all: &[Heaped]) -> String {
    let line = |name: &'static str, time: fn(&Heaped) -> f64| Line {
        name,
        points: all.iter().map(|heap| (heap.live, time(heap))).collect(),
    };
    plot(
        "How times grow with the heap",
        "live objects, MiB",
        "time, ms",
        &[
            line("collection, half at random", |heap| heap.random),
            line("fill", |heap| heap.fill),
            line("collection, half in trees", |heap| heap.trees),
            line("walk over all objects", |heap| heap.walk),
            line("collection that frees half", |heap| heap.free),
            line("time to stop, p99", |heap| heap.stop_p99 / 1e3),
            line("control: as many words read", Heaped::chased),
        ],
    )
}
