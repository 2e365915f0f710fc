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

mod holes;
mod mixed;
mod objects;
mod pair;
mod ring;
mod scaling;
mod window;

/// A table and its name. The function takes the number of rounds out of those
/// that a full run makes.
type Table = (&'static str, fn(bool));

const TABLES: [Table; 8] = [
    ("pair", |quick| pair::measure(rounds(quick, 301))),
    ("window", |quick| window::measure(1_000, rounds(quick, 201))),
    ("wide-window", |quick| window::measure(100_000, rounds(quick, 41))),
    ("mixed", |quick| mixed::measure(1_000, rounds(quick, 201))),
    ("wide-mixed", |quick| mixed::measure(100_000, rounds(quick, 31))),
    ("ring", |quick| ring::measure(rounds(quick, 61))),
    ("holes", |quick| holes::measure(rounds(quick, 101))),
    ("scaling", |quick| scaling::measure(rounds(quick, 101))),
];

fn rounds(quick: bool, full: usize) -> usize {
    if quick { 3 } else { full }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |option: &str| {
        let place = arguments.iter().position(|argument| argument == option);
        place.map(|place| &arguments[place + 1..])
    };
    if let Some([name, count, ..]) = after("--pairs") {
        return pair::run_one(name, count.parse().expect("a count of pairs"));
    }
    let quick = after("--quick").is_some();
    if let Some([name, ..]) = after("--table") {
        let (_, measure) = TABLES.iter().find(|(table, _)| table == name).expect("the name of a table");
        return measure(quick);
    }
    // Each table runs in a process of its own: what an allocator did for one could
    // slow it down, or speed it up, in the next.
    let program = std::env::current_exe().expect("the path of this program");
    for (name, _) in TABLES {
        let mut table = std::process::Command::new(&program);
        table.args(["--table", name]).args(quick.then_some("--quick"));
        if let Some([seed, ..]) = after("--seed") {
            table.args(["--seed", seed]);
        }
        assert!(table.status().expect("a process for the table").success(), "{name}");
    }
}
