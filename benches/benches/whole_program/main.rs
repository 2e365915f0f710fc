//! A whole program on each allocator: JSON parsed, counted in maps, sorted, dropped, and objects
//! replaced at random, on one thread and on two.
//!
//! `cargo bench -p benches --bench whole_program`, with `-- --quick` to see only that it runs.
//!
//! Each run is a process of its own, with one allocator from its first allocation to its last. The
//! allocators take turns, and the table has medians over the rounds: of the time by the wall clock, of the ratio to mimalloc's time in
//! the same round, and of the most memory that the process had.

mod chosen;
mod program;

use std::collections::BTreeMap;
use std::process::Command;

use chosen::{ALLOCATORS, WHICH};

/// What a process reports: nanoseconds, and KiB of memory at most.
#[derive(Clone, Copy)]
struct Run {
    time: f64,
    memory: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(allocator: &str, threads: usize) -> Run {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args(["--run", &threads.to_string()])
        .env(WHICH, allocator)
        .output()
        .expect("a process for the run");
    assert!(output.status.success(), "{allocator}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().expect("a number"));
    Run { time: numbers.next().expect("a time"), memory: numbers.next().expect("a size") }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, threads, ..] = &arguments[..]
        && flag == "--run"
    {
        return program::run(threads.parse().expect("a count of threads"));
    }
    let rounds = if arguments.iter().any(|argument| argument == "--quick") { 1 } else { 11 };
    for threads in [1, 2] {
        let mut runs = BTreeMap::<&str, Vec<Run>>::new();
        for round in 0..rounds {
            for turn in 0..ALLOCATORS.len() {
                let allocator = ALLOCATORS[(round + turn) % ALLOCATORS.len()];
                runs.entry(allocator).or_default().push(run(allocator, threads));
            }
        }
        println!("\n| whole program, {threads} threads | ms | of mimalloc | MiB | of mimalloc |");
        println!("|---|---:|---:|---:|---:|");
        let peers = runs["mimalloc"].clone();
        for allocator in ALLOCATORS {
            let own = &runs[allocator];
            let of = |part: fn(&Run) -> f64| median(own.iter().map(part).collect());
            let ratio = |part: fn(&Run) -> f64| {
                median(own.iter().zip(&peers).map(|(own, peer)| part(own) / part(peer)).collect())
            };
            println!(
                "| {allocator} | {:.0} | {:.2} | {:.1} | {:.2} |",
                of(|run| run.time) / 1e6,
                ratio(|run| run.time),
                of(|run| run.memory) / 1024.0,
                ratio(|run| run.memory),
            );
        }
    }
}
