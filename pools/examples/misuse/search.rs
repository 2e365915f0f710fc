//! A search for programs with one fault that harm other objects: random operations by all ways that a pool has, one fault, and
//! again random operations. It looks from outside: no two live objects overlap, no byte of a live object changes, and every call
//! returns and none panics (design/hardening.md `.search`).

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};

#[path = "kinds.rs"]
mod kinds;
#[path = "pools.rs"]
mod pools;
#[path = "program.rs"]
mod program;
#[path = "ways.rs"]
mod ways;

pub(crate) use kinds::{Fault, Kind};
pub(crate) use pools::run;
pub(crate) use program::{Outcome, Plan};

/// The bytes of the arena, and of a grain.
const SIZE: usize = 256 << 10;
const GRAIN: usize = 4096;

/// The programs for each pair of ways in the table of two frees.
pub(crate) const PROGRAMS_OF_ROW: u64 = 20;

/// No call takes longer than this many seconds: one that does hangs.
const PATIENCE: u64 = 20;

/// What became of the programs of a search with one kind of pool and one fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) programs: u64,
    pub(crate) found: u64,
    pub(crate) overlaps: u64,
    pub(crate) changed: u64,
    pub(crate) panics: u64,
    /// The number of the first program that harmed another object.
    pub(crate) first: Option<u64>,
}

impl Counts {
    pub(crate) const fn harmful(&self) -> u64 {
        self.overlaps + self.changed + self.panics
    }

    /// Adds the counts of another fault.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.programs += other.programs;
        self.found += other.found;
        self.overlaps += other.overlaps;
        self.changed += other.changed;
        self.panics += other.panics;
        self.first = self.first.or(other.first);
    }

    fn add(&mut self, number: u64, outcome: Outcome) {
        self.programs += 1;
        match outcome {
            Outcome::Harmless { is_found } => self.found += u64::from(is_found),
            Outcome::Overlap => self.overlaps += 1,
            Outcome::Changed => self.changed += 1,
            Outcome::Panic => self.panics += 1,
        }
        if !matches!(outcome, Outcome::Harmless { .. }) {
            self.first = self.first.or(Some(number));
        }
    }
}

/// Runs programs until that many committed their fault, or twenty times as many did not. A call that hangs ends the process.
pub(crate) fn search(
    kind: Kind,
    fault: Option<Fault>,
    programs: u64,
    seed: u64,
    operations: usize,
) -> Counts {
    let (progress, watched) = channel::<u64>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut last = None;
            loop {
                match watched.recv_timeout(Duration::from_secs(PATIENCE)) {
                    Ok(number) => last = Some(number),
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("HANG: {kind}, {fault:?}, seed {seed}, program {last:?}");
                        std::process::abort();
                    }
                }
            }
        });
        let mut counts = Counts::default();
        for number in 0.. {
            if counts.programs == programs || number > 20 * programs {
                break;
            }
            let _ = progress.send(number);
            let outcome =
                catch_unwind(AssertUnwindSafe(|| run(kind, Plan::Fault(fault, operations), seed, number)));
            if let Some(outcome) = outcome.unwrap_or(Some(Outcome::Panic)) {
                counts.add(number, outcome);
            }
        }
        drop(progress);
        counts
    })
}

/// How a double free is found, by the way of the first free and that of the second: a row of the table in design/hardening.md
/// `.twice`. A pair counts if the next request was refused in each of that many programs.
pub(crate) fn row_of_two_frees(kind: Kind, programs: u64, seed: u64) -> String {
    let names = kind.ways();
    let (mut at_once, mut others) = (0, Vec::new());
    for (first, second) in
        (0..names.len()).flat_map(|first| (0..names.len()).map(move |second| (first, second)))
    {
        let counts = count_two_frees(kind, [first, second], programs, seed);
        if counts.found == programs && counts.harmful() == 0 {
            at_once += 1;
        } else {
            let Counts { programs, found, .. } = counts;
            let pair = [names[first], names[second]].join(", then ");
            others.push(format!("{pair}: {found} of {programs}, {} harmful", counts.harmful()));
        }
    }
    let others = if others.is_empty() { "-".to_owned() } else { others.join("; ") };
    format!("| {kind} | {} | {at_once} of {} | {others} |", names.join(", "), names.len() * names.len())
}

/// Runs that many programs that free an object by these two ways.
fn count_two_frees(kind: Kind, [first, second]: [usize; 2], programs: u64, seed: u64) -> Counts {
    let mut counts = Counts::default();
    for number in 0..20 * programs {
        if counts.programs == programs {
            break;
        }
        if let Some(outcome) = run(kind, Plan::Twice(first, second), seed, number) {
            counts.add(number, outcome);
        }
    }
    counts
}
