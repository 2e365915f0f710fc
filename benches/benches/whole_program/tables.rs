//! The tables: each run is a process of its own, of the program that this is a part of.

use std::collections::BTreeMap;
use std::process::Command;

use benches::compare::median;
use benches::random::Random;
use benches::table::Table;

use crate::chosen::{ALLOCATORS, WHICH};
use crate::program::{WORKS, Work};

/// What a process took: milliseconds by the clock, and of the processors in the program and in the system; and MiB of
/// memory at most.
#[derive(Clone, Copy)]
struct Run {
    time: f64,
    program: f64,
    system: f64,
    memory: f64,
}

fn run(allocator: &str, work: Work, threads: usize) -> Run {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args(["--run", work.name(), &threads.to_string()])
        .env(WHICH, allocator)
        .output()
        .expect("a process for the run");
    assert!(output.status.success(), "{allocator}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().expect("a number"));
    let mut next = |unit: f64| numbers.next().expect("a time and a size") / unit;
    Run { time: next(1e6), program: next(1e6), system: next(1e6), memory: next(1024.0) }
}

/// A table for each work and each number of threads that it is done on.
pub(crate) fn tables(rounds: usize) -> Vec<Table> {
    let done = |work: Work| work.threads().iter().map(move |&threads| (work, threads));
    WORKS.into_iter().flat_map(done).map(|(work, threads)| table(work, threads, rounds)).collect()
}

fn table(work: Work, threads: usize, rounds: usize) -> Table {
    let mut runs = BTreeMap::<&str, Vec<Run>>::new();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut order = ALLOCATORS;
    for _ in 0..rounds {
        // A process meets the memory that the one before it left to the system: none may always follow the same.
        random.shuffle(&mut order);
        for allocator in order {
            runs.entry(allocator).or_default().push(run(allocator, work, threads));
        }
    }
    let columns =
        ["ms", "of mimalloc", "ms in the program", "of mimalloc", "ms in the system", "MiB", "of mimalloc"];
    let mut table = Table::new(format!("{}, {threads} threads", work.name()), &columns);
    let peers = &runs["mimalloc"];
    for allocator in ALLOCATORS {
        let own = &runs[allocator];
        let of = |part: fn(&Run) -> f64| median(own.iter().map(part));
        let ratio =
            |part: fn(&Run) -> f64| median(own.iter().zip(peers).map(|(own, peer)| part(own) / part(peer)));
        let numbers = [
            of(|run| run.time),
            ratio(|run| run.time),
            of(|run| run.program),
            ratio(|run| run.program),
            of(|run| run.system),
            of(|run| run.memory),
            ratio(|run| run.memory),
        ];
        table.add(allocator, &numbers.map(Some));
    }
    table
}
