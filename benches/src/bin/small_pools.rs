//! Many small pools, and pools that are made and dropped, beside `Box`.
//!
//! `cargo run --release -p benches --bin small_pools -- [--rounds N] [--growth]`
//!
//! Contenders take turns in one process, in alternating order; a ratio is that of one round, and the median is shown. Peak memory is
//! that of a process which runs the case once. `--growth` adds 2,000 pools that grow to 10,000 objects each.

use core::mem::{ManuallyDrop, transmute};
use std::env;
use std::process::Command;

use benches::processor;
use tripoint::{ArenaVm, ArenaVmOptions, Mfs, MfsCache, MfsOptions, PoolBox, UnitOf};

type Node = [u64; 4];
type Pool = Mfs<&'static ArenaVm, UnitOf<Node>>;
type Cache = MfsCache<'static, &'static ArenaVm, UnitOf<Node>>;

/// The objects that containers get at a time, if all live at once.
const STEP: usize = 200;

/// What holds objects, as a list or a map in a program would.
trait Container {
    fn new(arena: &'static ArenaVm) -> Self;
    fn add(&mut self, node: Node);
}

impl Container for Vec<Box<Node>> {
    fn new(_: &'static ArenaVm) -> Self {
        Self::new()
    }

    fn add(&mut self, node: Node) {
        self.push(Box::new(node));
    }
}

/// A pool for each container, with its cache: each in a box, because the cache borrows the pool and the objects the cache.
struct Pooled {
    objects: ManuallyDrop<Vec<PoolBox<'static, Node, Cache>>>,
    cache: ManuallyDrop<Box<Cache>>,
    pool: ManuallyDrop<Box<Pool>>,
}

impl Container for Pooled {
    fn new(arena: &'static ArenaVm) -> Self {
        let pool = Box::new(Mfs::create(arena, UnitOf::<Node>::new(), MfsOptions::default()).unwrap());
        // SAFETY: the pool stays in its box until the cache was dropped.
        let cache = Box::new(unsafe { transmute::<MfsCache<'_, _, _>, Cache>(pool.cache()) });
        let pool = ManuallyDrop::new(pool);
        Self { objects: ManuallyDrop::default(), cache: ManuallyDrop::new(cache), pool }
    }

    fn add(&mut self, node: Node) {
        let object = self.cache.boxed(node).unwrap();
        // SAFETY: the cache stays in its box until the objects were dropped.
        self.objects
            .push(unsafe { transmute::<PoolBox<'_, Node, Cache>, PoolBox<'static, Node, Cache>>(object) });
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // SAFETY: dropped here, once, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.objects) };
        // SAFETY: dropped here, once. The objects, which borrowed it, are gone.
        unsafe { ManuallyDrop::drop(&mut self.cache) };
        // SAFETY: dropped here, once. The cache, which borrowed it, is gone.
        unsafe { ManuallyDrop::drop(&mut self.pool) };
    }
}

/// A number of containers, each with the same number of objects.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    containers: usize,
    objects: usize,
    /// Whether all of them live at once, or one after another.
    at_once: bool,
}

const CASES: [Case; 6] = [
    Case { name: "2,000 of 8 at once", containers: 2000, objects: 8, at_once: true },
    Case { name: "2,000 of 30 at once", containers: 2000, objects: 30, at_once: true },
    Case { name: "2,000 of 200 at once", containers: 2000, objects: 200, at_once: true },
    Case { name: "20,000 of 8, one after another", containers: 20_000, objects: 8, at_once: false },
    Case { name: "5 of 100,000, one after another", containers: 5, objects: 100_000, at_once: false },
    Case { name: "2,000 that grow to 10,000", containers: 2000, objects: 10_000, at_once: true },
];

impl Case {
    fn run<C: Container>(self, arena: &'static ArenaVm) {
        let mut containers: Vec<C> = Vec::new();
        for _ in 0..self.containers {
            let mut container = C::new(arena);
            let first = if self.at_once { self.objects.min(STEP) } else { self.objects };
            (0..first).for_each(|_| container.add([1; 4]));
            if self.at_once {
                containers.push(container);
            }
        }
        // The others are added a few at a time, so that the containers grow into each other's memory.
        for _ in 1..self.objects.div_ceil(STEP) {
            containers.iter_mut().for_each(|container| (0..STEP).for_each(|_| container.add([2; 4])));
        }
    }

    /// The processor time of one run, in nanoseconds.
    fn time(self, pooled: bool, arena: &'static ArenaVm) -> f64 {
        let begun = processor::process_time();
        match pooled {
            true => self.run::<Pooled>(arena),
            false => self.run::<Vec<Box<Node>>>(arena),
        }
        (processor::process_time() - begun).as_nanos() as f64
    }

    /// The peak memory of a process that runs this once, in KiB.
    fn peak(self, pooled: bool) -> f64 {
        let mut peaks = [0; 3].map(|_: i32| {
            let program = env::current_exe().unwrap();
            let contender = if pooled { "pool" } else { "box" };
            let output = Command::new(program).args(["--peak", self.name, contender]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().unwrap()
        });
        median(&mut peaks)
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn arena() -> &'static ArenaVm {
    Box::leak(Box::new(ArenaVm::create(ArenaVmOptions::default()).unwrap()))
}

/// The most memory that this process had, in KiB. What `getrusage` says would include that of its parent.
fn own_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [flag, name, contender] = arguments.as_slice()
        && flag == "--peak"
    {
        let case = CASES.iter().find(|case| case.name == name).unwrap();
        case.time(contender == "pool", arena());
        println!("{}", own_peak());
        return;
    }
    let rounds = arguments.iter().skip_while(|&argument| argument != "--rounds").nth(1);
    let rounds: usize = rounds.map_or(15, |rounds| rounds.parse().unwrap());
    let growth = arguments.iter().any(|argument| argument == "--growth");
    println!("{}\n", processor::name());
    println!("| case | Box, us | Mfs, us | ratio | first round | Box, KiB | Mfs, KiB | ratio |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for case in CASES.into_iter().filter(|case| growth || case.objects != 10_000) {
        let arena = arena();
        let rounds = if case.objects == 10_000 { 3 } else { rounds };
        let pairs: Vec<[f64; 2]> = (0..rounds)
            .map(|round| {
                let mut pair = [0.0; 2];
                for turn in 0..2 {
                    let which = (round + turn) % 2;
                    pair[which] = case.time(which == 1, arena);
                }
                pair
            })
            .collect();
        let [boxed, pooled] =
            [0, 1].map(|which| median(&mut pairs.iter().map(|pair| pair[which]).collect::<Vec<_>>()));
        let ratio = median(&mut pairs.iter().map(|[boxed, pooled]| pooled / boxed).collect::<Vec<_>>());
        let first = pairs[0][1] / pairs[0][0];
        let [box_peak, pool_peak] = [false, true].map(|pooled| case.peak(pooled));
        println!(
            "| {} | {:.0} | {:.0} | {ratio:.2} | {first:.2} | {box_peak} | {pool_peak} | {:.2} |",
            case.name,
            boxed / 1e3,
            pooled / 1e3,
            pool_peak / box_peak
        );
    }
}
