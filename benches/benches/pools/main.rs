//! Caches and pool classes against general allocators: what the goals of
//! design/pool-mfs.md and design/cache.md are measured with.
//!
//! `cargo bench -p benches --bench pools`, with `-- --quick` to see only that it
//! runs. `-- --pairs NAME COUNT` runs one contender's pairs and nothing else:
//! `benches/instructions` counts them.
//!
//! In the tables a peer's ratio is its time divided by ours: a goal of 0.40x a
//! peer's time is a ratio of at least 2.50.

mod holes;
mod mixed;
mod objects;
mod pair;
mod processor;
mod ring;
mod scaling;
mod window;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(place) = arguments.iter().position(|argument| argument == "--pairs") {
        let count = arguments[place + 2].parse().expect("a count of pairs");
        return pair::run_one(&arguments[place + 1], count);
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let rounds = |full| if quick { 3 } else { full };
    pair::measure(rounds(301));
    window::measure(1_000, rounds(201));
    window::measure(100_000, rounds(41));
    mixed::measure(1_000, rounds(201));
    mixed::measure(100_000, rounds(31));
    ring::measure(rounds(61));
    holes::measure(rounds(101));
    scaling::measure(rounds(101));
}
