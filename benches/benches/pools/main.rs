//! Caches and pool classes against general allocators: these measure the goals
//! of design/pool-mfs.md and design/cache.md.
//!
//! `cargo bench -p benches --bench pools`, with `-- --quick` to see only that it
//! runs, with `-- --table NAME` for one table, with `-- --seed S` to repeat the orders of
//! contenders. `-- --pairs NAME COUNT` runs one contender's pairs and nothing else:
//! `benches/instructions` counts them.
//!
//! In the tables a peer's ratio is its time divided by ours: a goal of 0.40x a
//! peer's time is a ratio of at least 2.50.
//! (design/pool-mfs.md `.req.pair`.)

use benches::table::print_tables;
use benches::workloads::{run, run_pairs};

/// The workloads, each with tables of its own.
const TABLES: [&str; 8] =
    ["pair", "window", "wide-window", "mixed", "wide-mixed", "ring", "holes", "scaling"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |option: &str| {
        let place = arguments.iter().position(|argument| argument == option);
        place.map(|place| &arguments[place + 1..])
    };
    if let Some([name, count, ..]) = after("--pairs") {
        return run_pairs(name, count.parse().expect("a count of pairs"));
    }
    let quick = after("--quick").is_some();
    if let Some([name, ..]) = after("--table") {
        return print_tables(run(name, quick).expect("the name of a table"));
    }
    // Each table runs in a process of its own: what an allocator did for one could
    // slow it down, or speed it up, in the next.
    let program = std::env::current_exe().expect("the path of this program");
    for name in TABLES {
        let mut table = std::process::Command::new(&program);
        table.args(["--table", name]).args(quick.then_some("--quick"));
        if let Some([seed, ..]) = after("--seed") {
            table.args(["--seed", seed]);
        }
        assert!(table.status().expect("a process for the table").success(), "{name}");
    }
}
