//! Lists that are torn down in random order and built again, in memory that has aged.
//!
//! `cargo bench -p benches --bench aged`, with `-- --quick` to see only that it runs.
//!
//! Each run is a process of its own. The order of the contenders is drawn anew in each round. *first* is the time of an object
//! of the list that is built first, *in order* of the one after a teardown in the order of birth, and *at random* of one after
//! several teardowns in random order, each with four walks along the list. The ratios are medians of those of single rounds.

use std::process::Command;

use benches::compare::median;
use benches::random::Random;
use benches::table::{Table, print_tables};
use benches::workloads::{AGED, run_aged};

/// The peer that the last column compares with.
const PEER: &str = "system malloc";

/// Nanoseconds an object.
#[derive(Clone, Copy)]
struct Run {
    first: f64,
    in_order: f64,
    at_random: f64,
}

fn run(contender: &str, count: usize, sizes: &str) -> Run {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args(["--run", contender, &count.to_string(), sizes])
        .output()
        .expect("a process for the run");
    assert!(output.status.success(), "{contender}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let numbers: Vec<f64> = text
        .split_whitespace()
        .map(|number| number.parse::<f64>().expect("a number") / count as f64)
        .collect();
    let [first, in_order, at_random] = numbers[..] else { panic!("three times, and not {text}") };
    Run { first, in_order, at_random }
}

fn table(count: usize, sizes: &str, rounds: usize) -> Table {
    let serves = |contender: &str| sizes == "one" || !contender.starts_with("MfsCache");
    let contenders: Vec<&str> = AGED.into_iter().filter(|contender| serves(contender)).collect();
    let mut order = contenders.clone();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let rounds: Vec<Vec<Run>> = (0..rounds)
        .map(|_| {
            random.shuffle(&mut order);
            let mut runs: Vec<_> = order.iter().map(|name| (*name, run(name, count, sizes))).collect();
            runs.sort_by_key(|(name, _)| contenders.iter().position(|contender| contender == name));
            runs.into_iter().map(|(_, run)| run).collect()
        })
        .collect();
    let peer = contenders.iter().position(|contender| *contender == PEER).expect("the peer");
    let columns = [
        "first, ns",
        "in order",
        "at random",
        "at random of first",
        "of in order",
        "at random, of system malloc",
    ];
    let title = if sizes == "one" { "64 bytes" } else { "16 to 512 bytes" };
    let mut table = Table::new(format!("{title}, {count} objects"), &columns);
    for (index, contender) in contenders.iter().enumerate() {
        let of = |part: fn(&[Run], usize, usize) -> f64| {
            Some(median(rounds.iter().map(|runs| part(runs, index, peer))))
        };
        let numbers = [
            of(|runs, own, _| runs[own].first),
            of(|runs, own, _| runs[own].in_order),
            of(|runs, own, _| runs[own].at_random),
            of(|runs, own, _| runs[own].at_random / runs[own].first),
            of(|runs, own, _| runs[own].at_random / runs[own].in_order),
            of(|runs, own, peer| runs[own].at_random / runs[peer].at_random),
        ];
        table.add(*contender, &numbers);
    }
    table
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, contender, count, sizes] = &arguments[..]
        && flag == "--run"
    {
        let aged = run_aged(contender, count.parse().expect("a count of objects"), sizes != "one");
        let [first, in_order, at_random] =
            [aged.first, aged.in_order, aged.at_random].map(|time| time.as_nanos());
        return println!("{first} {in_order} {at_random}");
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let runs: &[(usize, usize)] = if quick { &[(1_000, 1)] } else { &[(100_000, 9), (1_000_000, 3)] };
    for &(count, rounds) in runs {
        for sizes in ["one", "many"] {
            print_tables([table(count, sizes, rounds)]);
        }
    }
}
