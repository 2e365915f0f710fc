//! What collections cost that have much to look at beside objects: weak pairs whose values lead to each other's keys,
//! registrations for finalization, and roots (design/gc-typed.md `.typed.pairs.waiting`, design/gc.md `.final.generation`).
//!
//! ```sh
//! cargo run --release -p tripoint-gc --example many_registrations
//! cargo run --release -p tripoint-gc --example many_registrations -- --instructions
//! ```
//!
//! Times are medians of a few collections, as a clock on the wall has them: compare lines of one run on a machine that does
//! nothing else. What was examined and looked at is the same in every run, and so are instructions, which valgrind counts of this
//! program run again: that takes minutes.

use core::fmt;
use core::time::Duration;
use std::process::Command;
use std::time::Instant;

use tripoint_core::{ClientArena, ClientArenaOptions};
use tripoint_gc::{Collection, FinalQueue, Heap, HeapOptions, SweptOptions, TypedObjects, WeakPair};

type Result<T> = core::result::Result<T, Box<dyn core::error::Error>>;
type Objects<'h, 'm> = TypedObjects<'h, &'m ClientArena<'m>>;

const ALL: Duration = Duration::MAX;
const MILLION: usize = 1_000_000;

/// What is in a heap while it is collected.
#[derive(Clone, Copy)]
enum Case {
    /// A slice of that many pairs, in which each value is the key of the pair in front of it.
    Pairs(usize),
    /// An empty nursery, beside old objects in a slice, of which some are registered, and roots of one of them.
    Beside { objects: usize, registrations: usize, roots: usize },
}

const CASES: [Case; 7] = [
    Case::Pairs(10_000),
    Case::Pairs(100_000),
    Case::Pairs(MILLION),
    Case::Beside { objects: 0, registrations: 0, roots: 0 },
    Case::Beside { objects: 0, registrations: 0, roots: MILLION },
    Case::Beside { objects: MILLION, registrations: 0, roots: 0 },
    Case::Beside { objects: MILLION, registrations: MILLION, roots: 0 },
];

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pairs(count) => write!(f, "{count:>7} weak pairs, a full collection"),
            Self::Beside { objects, registrations, roots } => write!(
                f,
                "{objects:>7} old objects, {registrations:>7} registrations, {roots:>7} roots, a minor collection"
            ),
        }
    }
}

/// Calls `test` with a collection of a heap with what the case has, as often as it likes.
fn with_case(case: Case, test: impl FnOnce(&mut dyn FnMut() -> Collection)) -> Result<()> {
    let mut memory = Box::new_uninit_slice(1 << 30);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    let heap = Heap::create(&arena, HeapOptions::default())?;
    let _parked = heap.park();
    let objects = TypedObjects::create(&heap, SweptOptions::default())?;
    match case {
        Case::Pairs(count) => with_pairs(&objects, count, test),
        Case::Beside { objects: count, registrations, roots } => {
            beside(&objects, [count, registrations, roots], test)
        }
    }
}

fn with_pairs(
    objects: &Objects<'_, '_>,
    count: usize,
    test: impl FnOnce(&mut dyn FnMut() -> Collection),
) -> Result<()> {
    let mut mutator = objects.register()?;
    let _roots = mutator.try_enter(|inside| {
        let mut keys = Vec::with_capacity(count + 1);
        for number in 0..=count {
            keys.push(inside.alloc(number)?);
        }
        let pair = |index: usize| WeakPair::new(Some((keys[index], keys[index + 1])));
        let pairs = inside.slice(count, |index| pair(count - 1 - index))?;
        Ok((objects.root(inside, pairs)?, objects.root(inside, keys[0])?))
    })?;
    test(&mut || mutator.collect(ALL).expect("no other thread is inside"));
    Ok(())
}

fn beside(
    objects: &Objects<'_, '_>,
    [count, registrations, roots]: [usize; 3],
    test: impl FnOnce(&mut dyn FnMut() -> Collection),
) -> Result<()> {
    let mut mutator = objects.register()?;
    let queue: FinalQueue<'_, u64> = objects.final_queue()?;
    let _kept = mutator.try_enter(|inside| {
        let mut numbers = Vec::new();
        for _ in 0..count {
            numbers.push(inside.alloc(7_u64)?);
        }
        for number in &numbers[..registrations] {
            queue.register(inside, *number)?;
        }
        let one = inside.alloc(7_u64)?;
        let roots: tripoint_core::Result<Vec<_>> = (0..roots).map(|_| objects.root(inside, one)).collect();
        let slice = inside.slice(numbers.len(), |index| Some(numbers[index]))?;
        Ok((objects.root(inside, slice)?, roots?))
    })?;
    for _ in 0..4 {
        mutator.collect(ALL)?;
    }
    test(&mut || mutator.collect_up_to(0, ALL).expect("no other thread is inside"));
    Ok(())
}

/// The median time of some calls, in microseconds.
fn median(mut call: impl FnMut()) -> f64 {
    let mut times: Vec<_> = (0..9)
        .map(|_| {
            let begin = Instant::now();
            call();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// The instructions of a collection: the difference of two runs of this program under valgrind, of which one collects more often.
fn instructions(number: usize) -> Result<u64> {
    let count = |collections: u64| -> Result<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe()?)
            .args(["--only", &number.to_string(), &collections.to_string()])
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let counted = text.lines().find_map(|line| line.split_once("Collected :"));
        Ok(counted.ok_or_else(|| format!("nothing was counted: {text}"))?.1.trim().parse()?)
    };
    const MORE: u64 = 4;
    Ok((count(1 + MORE)? - count(1)?) / MORE)
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let with_instructions = match arguments.as_slice() {
        [] => false,
        ["--instructions"] => true,
        ["--only", number, collections] => {
            let (case, collections) = (CASES[number.parse::<usize>()?], collections.parse::<usize>()?);
            return with_case(case, |collect| (0..collections).for_each(|_| _ = collect()));
        }
        _ => return Err("usage: many_registrations [--instructions]".into()),
    };
    for (number, case) in CASES.into_iter().enumerate() {
        with_case(case, |collect| {
            let Collection { examined, registrations, roots, .. } = collect();
            let time = median(|| _ = collect());
            print!("{case}: {time:>10.2} us");
            match case {
                Case::Pairs(count) => print!(
                    ", {:>6.1} ns and {} bytes examined a pair",
                    time * 1e3 / count as f64,
                    examined / count
                ),
                Case::Beside { .. } => {
                    print!(", looked at {registrations} registrations and {roots} roots");
                }
            }
        })?;
        if with_instructions {
            let each = instructions(number)?;
            match case {
                Case::Pairs(count) => print!(", {:.1} instructions a pair", each as f64 / count as f64),
                Case::Beside { .. } => print!(", {each} instructions"),
            }
        }
        println!();
    }
    Ok(())
}
