//! Mutators that do random things with a heap, against a shadow graph that knows what is reachable: nothing is lost,
//! and nothing is kept beyond two full collections (design/gc.md `.req.kept`, `.req.freed`).
//!
//! `verify/collections` runs it. Each run has an arena, a heap with a pool of each class, and mutators of its own, which
//! a generator draws from the seed and the number of the run.

#[path = "../../tests/common/mod.rs"]
mod common;
mod flaw;
mod graph;
mod nodes;
mod shadow;
mod world;

use core::time::Duration;
use std::process::{Command, ExitCode, exit};
use std::sync::Mutex;
use std::time::Instant;
use std::{env, panic};

use flaw::Flaw;
use tripoint_oracle::Random;
use world::{Config, Totals};

const USAGE: &str = "random_mutators [--operations N] [--seed S] [--run R] [--flaw NAME | --flaws]

--operations  how many operations there are, by default 1,000,000
--seed        what is drawn, by default 1
--run         one run alone, as in the others with this seed
--flaw        with a flaw, which has to be found: mark, sweep, weak, nail, finalization, location or barrier
--flaws       whether each flaw is found";

/// In how many operations a flaw has to be found.
const FLAWED: usize = 300_000;

#[derive(Clone, Debug)]
struct Options {
    operations: usize,
    seed: u64,
    run: Option<u64>,
    flaw: Option<Flaw>,
    is_flaws: bool,
}

fn main() -> ExitCode {
    let Some(options) = parse(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if options.is_flaws {
        return find_flaws(options.seed);
    }
    run_all(&options);
    ExitCode::SUCCESS
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { operations: 1_000_000, seed: 1, run: None, flaw: None, is_flaws: false };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--flaws" => options.is_flaws = true,
            "--operations" => options.operations = words.next()?.parse().ok()?,
            "--seed" => options.seed = words.next()?.parse().ok()?,
            "--run" => options.run = Some(words.next()?.parse().ok()?),
            "--flaw" => {
                let name = words.next()?;
                options.flaw = Some(Flaw::ALL.into_iter().find(|flaw| flaw.name() == name)?);
            }
            _ => return None,
        }
    }
    Some(options)
}

/// What goes on, for the message if it fails.
static NOW: Mutex<String> = Mutex::new(String::new());

/// Has a failure on any thread end the process: the others would wait for that thread.
fn end_at_the_first_failure() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        tell(info);
        eprintln!("{}", NOW.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        exit(1);
    }));
}

fn run_all(options: &Options) {
    let &Options { operations, seed, run, flaw, .. } = options;
    end_at_the_first_failure();
    println!("{operations} operations, seed {seed}");
    let (begin, mut told) = (Instant::now(), Instant::now());
    let (mut totals, mut done) = (Totals::default(), 0);
    let mut number = run.unwrap_or(0);
    while done < operations {
        let mut random = Random::new(seed ^ number.rotate_right(16));
        let config = Config::draw(&mut random, flaw);
        *NOW.lock().unwrap() = format!("in run {number} of seed {seed}: {config:?}");
        totals.add(&world::run(&config, &mut random));
        done += config.operations();
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            println!("{:6} s: {done} operations, {number} runs", begin.elapsed().as_secs());
        }
        number += 1;
        if run.is_some() {
            break;
        }
    }
    println!("{done} operations in {number} runs, {} s:", begin.elapsed().as_secs());
    for (name, count) in totals.list() {
        println!("{count:14} {name}");
        // What did not happen was not tested.
        assert!(count > 0 || done < 10_000_000 || name.starts_with("bytes"), "there were no {name}");
    }
    println!("nothing was lost, and nothing kept beyond two collections");
}

/// Runs this program without a flaw, and with each. What the oracle says first depends on the seed: a node that is lost may
/// show in a weak reference to it.
fn find_flaws(seed: u64) -> ExitCode {
    let mut is_all = true;
    for flaw in [None].into_iter().chain(Flaw::ALL.map(Some)) {
        let program = env::current_exe().expect("a program knows where it is");
        let mut command = Command::new(program);
        command.args(["--operations", &FLAWED.to_string(), "--seed", &seed.to_string()]);
        if let Some(flaw) = flaw {
            command.args(["--flaw", flaw.name()]);
        }
        let output = command.output().expect("it runs once, so it runs again");
        let said = String::from_utf8_lossy(&output.stderr);
        // The line behind that which says where.
        let finding = said.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
        let is_right = match (output.status.code(), finding) {
            (Some(0), None) => flaw.is_none(),
            (Some(1), Some(_)) => flaw.is_some(),
            _ => false,
        };
        is_all &= is_right;
        let (name, verdict) = (flaw.map_or("no flaw", Flaw::name), if is_right { "" } else { "WRONG: " });
        println!("{name:14} {verdict}{}", finding.unwrap_or("nothing found"));
    }
    if is_all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
