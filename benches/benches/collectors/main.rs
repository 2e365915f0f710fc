//! Automatic pools against other collectors, and against freeing by hand: these measure the goals of `design/gc.md` and
//! print the tables of `design/gc-figures.md`.
//!
//! `cargo bench -p benches --bench collectors`, with `-- --quick` to see only that it runs, with `-- --work NAME` for one
//! work, with `-- --rounds N`, with `-- --seed S` to repeat the orders of contenders. `-- --run WORK CONTENDER` runs one
//! contender's work in this process and nothing else, for a profiler.
//!
//! Each contender runs once in each round, in an order that is drawn anew, in a process of its own, so that no heap is in the
//! way of another. It prints the processor time of all of its threads, the most memory that it had, and its longest pause:
//! the longest processor time of the thread between two moments at which little work was done. The tables have medians.
//! A ratio is that of two contenders of the same round. All contenders of a work have to come to the same result.
//! (design/gc-figures.md `.req.trees`.)

#[cfg(boehm)]
mod boehm;
mod contenders;
mod map;
mod queue;
mod run;
mod table;
mod text;
mod trees;

use std::env;
use std::process::Command;

use benches::compare::seed;
use benches::random::Random;

use run::{Laps, Sample, Size};

/// Does a work once, and returns a number that is the same for all contenders.
type Run = fn(Size, &mut Laps) -> u64;

/// A contender's name, and how it does a work.
type Contender = (&'static str, Run);

/// A work: its name, what it is, and the contenders.
type Work = (&'static str, &'static str, &'static [Contender]);

const WORKS: [Work; 4] = [
    ("trees", "binary trees, depth 18: many that die young, one that lasts", trees::CONTENDERS),
    ("queue", "a queue: each object is written once it is old, and dies old", queue::CONTENDERS),
    ("map", "a map: small objects, of which a random one is replaced", map::CONTENDERS),
    ("text", "text: eight words and a line of them, again and again", text::CONTENDERS),
];

/// Runs a contender in a process of its own.
fn measure(work: &str, contender: &str, size: Size) -> Sample {
    let program = env::current_exe().expect("the path of this program");
    let mut process = Command::new(program);
    process.args(["--run", work, contender]).args((size == Size::Quick).then_some("--quick"));
    let output = process.output().expect("a process for the contender");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    text.parse().unwrap_or_else(|()| panic!("{work}, {contender}: {}\n{text}{errors}", output.status))
}

/// Has all contenders of a work take turns, and prints their table.
fn compare((name, what, contenders): Work, size: Size, rounds: usize, random: &mut Random) {
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        random.shuffle(&mut order);
        for &index in &order {
            samples[index].push(measure(name, contenders[index].0, size));
        }
    }
    let results: Vec<u64> = samples.iter().map(|samples| samples[0].result).collect();
    assert!(results.iter().all(|result| *result == results[0]), "{name}: {results:?}");
    let names: Vec<&str> = contenders.iter().map(|(name, _)| *name).collect();
    table::print(what, &names, &samples);
}

/// Does the work that the arguments name, in this process.
fn run_one(work: &str, contender: &str, size: Size) {
    let (_, _, contenders) = WORKS.iter().find(|(name, ..)| *name == work).expect("the name of a work");
    let (_, run) = contenders.iter().find(|(name, _)| *name == contender).expect("the name of a contender");
    println!("{}", Sample::take(|laps| run(size, laps)));
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let after = |option: &str| {
        let place = arguments.iter().position(|argument| argument == option);
        place.map(|place| &arguments[place + 1..])
    };
    let size = if after("--quick").is_some() { Size::Quick } else { Size::Full };
    if let Some([work, contender, ..]) = after("--run") {
        return run_one(work, contender, size);
    }
    if cfg!(not(boehm)) {
        println!("The Boehm GC is left out: its library was not found when this was built.");
    }
    let rounds = match (after("--rounds"), size) {
        (Some([rounds, ..]), _) => rounds.parse().expect("a number of rounds"),
        (_, Size::Quick) => 1,
        (_, Size::Full) => 7,
    };
    let mut random = Random(seed());
    for work in WORKS {
        if after("--work").is_none_or(|names| names.first().is_some_and(|name| name == work.0)) {
            compare(work, size, rounds, &mut random);
        }
    }
}
