//! Traces that no program made, from a seed ([design/cli-traces.md `.synthesize`](crate::design::cli_traces)).

use core::cmp::Reverse;
use core::fmt;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use clap::Args;
use fastrand::Rng;

use crate::trace::format::{Kind, Operation, Step, Summary, Writer};

/// What a synthesized program does.
#[derive(Clone, Debug, Args)]
pub(crate) struct Parameters {
    /// Objects that are allocated
    #[arg(long, default_value_t = 100_000)]
    pub(crate) objects: u64,
    /// The smallest size, in bytes
    #[arg(long, default_value_t = 16, value_name = "BYTES")]
    pub(crate) smallest: u64,
    /// The largest size, in bytes; each doubling between them is as likely as any other
    #[arg(long, default_value_t = 1024, value_name = "BYTES")]
    pub(crate) largest: u64,
    /// How many objects are allocated during the life of an object, on average; lives are distributed exponentially
    #[arg(long, default_value_t = 1000, value_name = "OBJECTS")]
    pub(crate) lifetime: u64,
    /// Threads, which take turns
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: u32,
    /// Objects that a thread allocates in one turn, on average
    #[arg(long, default_value_t = 100, value_name = "OBJECTS")]
    pub(crate) turn: u64,
    /// Of 100 objects, how many are freed by another thread
    #[arg(long, default_value_t = 10, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    pub(crate) foreign: u8,
    /// For 100 objects, how many times one is resized
    #[arg(long, default_value_t = 5, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    pub(crate) reallocs: u8,
}

/// The options that ask for them.
impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, smallest, largest, lifetime, threads, turn, foreign, reallocs } = self;
        write!(f, "--objects {objects} --smallest {smallest} --largest {largest} --lifetime {lifetime} ")?;
        write!(f, "--threads {threads} --turn {turn} --foreign {foreign} --reallocs {reallocs}")
    }
}

/// A program that is synthesized.
struct Program<'a, W: Write> {
    parameters: &'a Parameters,
    random: Rng,
    writer: Writer<W>,
    /// When each live object is freed, and by which thread.
    deaths: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Threads that have done a step: threads are numbered in the order of their first.
    begun: u32,
}

/// Writes a trace. Everything that is allocated is freed, and the same seed makes the same trace.
pub(crate) fn synthesize<W: Write>(
    writer: Writer<W>,
    parameters: &Parameters,
    seed: u64,
) -> io::Result<Summary> {
    let random = Rng::with_seed(seed);
    let mut program = Program { parameters, random, writer, deaths: BinaryHeap::new(), begun: 0 };
    let mut thread = 0;
    for time in 0..parameters.objects {
        if program.random.u64(..parameters.turn.max(1)) == 0 {
            thread = program.any_thread();
        }
        program.free_until(time)?;
        program.allocate(time, thread)?;
    }
    program.free_until(u64::MAX)?;
    for thread in 0..program.begun {
        program.step(thread, Operation::EndThread)?;
    }
    let summary = Summary { threads: program.begun, ended: "synthesized".to_owned(), ..Summary::default() };
    program.writer.finish(summary)
}

impl<W: Write> Program<'_, W> {
    fn allocate(&mut self, time: u64, thread: u32) -> io::Result<()> {
        let size = self.size();
        let object = self.writer.next_object();
        let kind = match self.random.u8(..32) {
            0 => Kind::Aligned(self.random.u8(5..=8)),
            1..4 => Kind::Zeroed,
            _ => Kind::Plain,
        };
        self.step(thread, Operation::Alloc { kind, size })?;
        if self.random.u8(..100) < self.parameters.reallocs {
            let size = self.size();
            self.step(thread, Operation::Realloc { object, size })?;
        }
        let life = -(1.0 - self.random.f64()).ln() * self.parameters.lifetime as f64;
        let freed_by =
            if self.random.u8(..100) < self.parameters.foreign { self.any_thread() } else { thread };
        self.deaths.push(Reverse((time.saturating_add(1 + life as u64), object, freed_by)));
        Ok(())
    }

    fn free_until(&mut self, time: u64) -> io::Result<()> {
        while let Some(&Reverse((death, object, thread))) = self.deaths.peek()
            && death <= time
        {
            self.deaths.pop();
            self.step(thread, Operation::Free { object })?;
        }
        Ok(())
    }

    /// One of the threads that have begun, or the next.
    fn any_thread(&mut self) -> u32 {
        self.random.u32(..self.parameters.threads.min(self.begun + 1))
    }

    /// A size of which every doubling is as likely as any other.
    fn size(&mut self) -> u64 {
        let (smallest, largest) = (self.parameters.smallest.max(1), self.parameters.largest);
        let ratio = (largest.max(smallest) as f64 / smallest as f64).powf(self.random.f64());
        (smallest as f64 * ratio) as u64
    }

    fn step(&mut self, thread: u32, operation: Operation) -> io::Result<()> {
        // A thread that was drawn as the next begins only if none was drawn as the next before it.
        let thread = thread.min(self.begun);
        self.begun = self.begun.max(thread + 1);
        self.writer.write(Step { thread, operation })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::Parser;

    use super::*;
    use crate::trace::format::{Header, History};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        parameters: Parameters,
    }

    /// A trace that these options make.
    pub(crate) fn trace(options: &str, seed: u64) -> tempfile::NamedTempFile {
        let line = Line::parse_from(["synthesize"].into_iter().chain(options.split_whitespace()));
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let writer = Writer::begin(io::BufWriter::new(&mut file), &Header::default()).unwrap();
        synthesize(writer, &line.parameters, seed).unwrap();
        file
    }

    fn history(options: &str, seed: u64) -> History {
        let (history, cut) = History::read(trace(options, seed).reopen().unwrap()).unwrap();
        assert!(cut.is_none(), "{cut:?}");
        history
    }

    #[test]
    fn a_seed_makes_one_trace_and_another_seed_another() {
        let options = "--objects 1000 --threads 4 --turn 5";
        assert_eq!(history(options, 3).steps, history(options, 3).steps);
        assert_ne!(history(options, 3).steps, history(options, 4).steps);
    }

    #[test]
    fn a_trace_is_as_its_parameters_say() {
        let history = history(
            "--objects 20000 --smallest 32 --largest 4096 --lifetime 300 --threads 3 --foreign 50",
            1,
        );
        let totals = history.totals;
        assert_eq!(
            (totals.allocations, totals.frees, totals.threads, totals.final_live),
            (20_000, 20_000, 3, 0)
        );
        assert!((800..1200).contains(&totals.reallocs), "{}", totals.reallocs);
        assert!((300..600).contains(&totals.peak_objects), "{}", totals.peak_objects);
        for step in history.steps {
            if let Operation::Alloc { size, .. } = step.operation {
                assert!((32..=4096).contains(&size), "{size}");
            }
        }
    }
}
