//! Whole programs on each allocator: JSON parsed, counted in maps, sorted, dropped, and objects replaced at random;
//! large documents parsed, kept and dropped; and documents parsed by one thread and dropped by another.
//!
//! `cargo bench -p benches --bench whole_program`, with `-- --rounds 3` for fewer rounds than 11, and `-- --quick` to see only that
//! it runs.
//!
//! Each run is a process of its own, with one allocator from its first allocation to its last. The order of the
//! allocators is drawn anew in each round, and the table has medians over the rounds: of the time by the wall clock, of the ratio to mimalloc's time in
//! the same round, and of the most memory that the process had.

mod chosen;
mod program;
mod tables;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, work, threads, ..] = &arguments[..]
        && flag == "--run"
    {
        return program::run(work, threads.parse().expect("a count of threads"));
    }
    let mut given = arguments.iter().skip_while(|argument| *argument != "--rounds").skip(1);
    let rounds = match given.next() {
        Some(rounds) => rounds.parse().expect("a count of rounds"),
        None if arguments.iter().any(|argument| argument == "--quick") => 1,
        None => 11,
    };
    benches::table::print_tables(tables::tables(rounds));
}
