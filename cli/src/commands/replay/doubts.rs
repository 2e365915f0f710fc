//! Why times may mean little: what was seen of other work on the machine
//! ([design/cli-traces.md `.doubts`](crate::design::cli_traces)).

use super::table::bounds;
use crate::plotting::Unit;
use crate::trace::replay::{Compared, Row};

/// More interruptions than this in a second of processor time are those of another program on the same processor.
const INTERRUPTIONS: f64 = 50.0;

/// Fewer interruptions than this are chance.
const CHANCE: u64 = 10;

/// Rounds that differ by this factor do not measure the same.
const APART: f64 = 1.5;

/// What makes the times doubtful, a sentence each; none if nothing was seen, or no times were measured.
pub(super) fn doubts(compared: &Compared, threads: u32, operations: u64) -> Vec<String> {
    let rows = &compared.rows;
    if rows.iter().all(|row| row.rounds.is_empty()) {
        return Vec::new();
    }
    let mut doubts: Vec<String> = load(compared).into_iter().collect();
    // Threads that wake each other interrupt each other.
    if threads == 1 {
        doubts.extend(interruptions(rows, operations));
    }
    doubts.extend(slower_than_nothing(rows));
    doubts.extend(rows.iter().filter_map(apart));
    doubts
}

/// Others had work for all processors.
fn load(compared: &Compared) -> Option<String> {
    let machine = compared.machine;
    let load = machine.load.filter(|load| *load >= machine.processors as f64)?;
    let processors = machine.processors;
    Some(format!("the load average was {load:.1} before the first run, on {processors} processors"))
}

fn interruptions(rows: &[Row], operations: u64) -> Option<String> {
    let count: u64 = rows.iter().map(|row| row.outcome.interruptions).sum();
    let each: f64 = rows.iter().flat_map(|row| row.rounds.iter().chain(&row.rounds_warm)).sum();
    let ns = each * operations as f64;
    (count >= CHANCE && count as f64 > INTERRUPTIONS * ns / 1e9).then(|| {
        let time = Unit::Nanoseconds.brief(ns);
        format!("other programs interrupted the replays {count} times in {time} of processor time")
    })
}

/// What allocates nothing took longer than what allocates.
fn slower_than_nothing(rows: &[Row]) -> Option<String> {
    let none = rows.iter().find(|row| !row.is_allocator())?;
    let time = |ns: f64| Unit::Nanoseconds.brief(ns);
    let slower = |when: &str, of: fn(&Row) -> Option<f64>| {
        let nothing = of(none)?;
        let known = rows.iter().filter(|row| row.is_allocator()).filter_map(|row| Some((row, of(row)?)));
        let (row, least) = known.min_by(|one, other| one.1.total_cmp(&other.1))?;
        (nothing > least).then(|| {
            let (nothing, least) = (time(nothing), time(least));
            format!("{when}, `none`, which allocates nothing, took {nothing}, and {} took {least}", row.name)
        })
    };
    let first = slower("at first", |row| row.outcome.mean);
    first.or_else(|| slower("when warm", |row| row.outcome.warm))
}

/// The rounds of a contender are far apart.
fn apart(row: &Row) -> Option<String> {
    let of = |when: &str, rounds: &[f64]| {
        let (least, most) = bounds(rounds).filter(|(least, most)| *most > APART * least)?;
        let (least, most) = (Unit::Nanoseconds.brief(least), Unit::Nanoseconds.brief(most));
        Some(format!("{when}, rounds of {} took from {least} to {most}", row.name))
    };
    of("at first", &row.rounds).or_else(|| of("when warm", &row.rounds_warm))
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::row;
    use super::*;
    use crate::trace::replay::Machine;

    fn compared(rows: Vec<Row>, load: f64) -> Compared {
        Compared { rows, machine: Machine { processors: 2, load: Some(load) } }
    }

    /// A quiet run: 10 and 3 ns an operation.
    fn quiet() -> Vec<Row> {
        vec![row("tlsf", &[10.0, 11.0, 9.0], 3.0), row("none", &[3.0, 3.1, 2.9], 3.0)]
    }

    #[test]
    fn a_quiet_machine_leaves_no_doubt() {
        assert!(doubts(&compared(quiet(), 1.9), 1, 1_000_000).is_empty());
        assert!(doubts(&compared(Vec::new(), 99.0), 1, 1).is_empty(), "no times, no doubt");
    }

    #[test]
    fn each_sign_of_other_work_is_said_with_what_was_seen() {
        let one = |compared: &Compared, threads| {
            let doubts = doubts(compared, threads, 1_000_000);
            assert_eq!(doubts.len(), 1, "{doubts:?}");
            doubts[0].clone()
        };
        assert!(one(&compared(quiet(), 9.3), 1).contains("load average was 9.3 before the first run, on 2"));
        // 58.5 ns for each of a million operations.
        let mut interrupted = quiet();
        interrupted[0].outcome.interruptions = 40;
        let interrupted = compared(interrupted, 0.0);
        assert!(one(&interrupted, 1).contains("40 times in 58.5 ms of processor time"));
        assert!(doubts(&interrupted, 2, 1_000_000).is_empty(), "threads of the replay interrupt each other");
        assert!(doubts(&interrupted, 1, 100_000_000).is_empty(), "40 times in 6 s");
        let slow = vec![row("tlsf", &[10.0], 12.0), row("mfs", &[11.0], 12.0), row("none", &[12.0], 12.0)];
        let said = one(&compared(slow, 0.0), 1);
        assert!(said.contains("`none`, which allocates nothing, took 12 ns, and tlsf took 10 ns"), "{said}");
        let apart = vec![row("tlsf", &[10.0, 16.0, 10.5], 3.0), row("none", &[3.0], 3.0)];
        assert!(one(&compared(apart, 0.0), 1).contains("rounds of tlsf took from 10 ns to 16 ns"));
    }
}
