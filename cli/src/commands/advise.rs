//! `tripoint advise`.

mod rust;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::error::TraceError;
use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::progress;
use crate::target::Target;
use crate::trace::advise::{self, Advice, Mark, Marks};
use crate::trace::replay::{self, Measure, Order, Outline, PEERS};

/// Advise on sizes for an Init, from a trace or from telemetry
///
/// The advice of a trace is for a `Tlsf` pool with a cache for each thread. It is tried out: the trace is replayed with it
/// twice, and the second time nothing may grow. The advice of telemetry is from high-water marks of arenas and pools, and if
/// its events name objects, that of a trace, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint record -o app.trace -- ./app && tripoint advise app.trace
  tripoint advise --rust app.trace > src/main.rs
  tripoint advise /dev/shm/orders

Exit status: 0 if the second replay with the advice did not grow, 1 if it grew or was refused memory, 2 if the trace is bad.")]
pub(crate) struct Advise {
    /// Write a program in Rust that sets an arena, a pool and a cache up as advised; of telemetry, if its events name objects
    #[arg(long)]
    rust: bool,
    /// A trace, a telemetry file, a core file, a capture, or the number of a process
    #[arg(value_name = "TRACE|PID|FILE")]
    source: Target,
}

/// What a trace says.
#[derive(Debug, Serialize)]
struct Advised {
    #[serde(flatten)]
    advice: Advice,
    /// The most bytes that were live.
    peak_live: u64,
    /// Resident bytes of general allocators when the most were live.
    peers: Vec<(String, Option<i64>)>,
}

impl Advise {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let bar = progress::begin(out.is_json(), 0);
        let advised = match &self.source {
            Target::File(path) => match Outline::read(path, u64::MAX, &bar) {
                Err(Error::Trace { error: TraceError::Foreign, .. }) => None,
                outline => Some(advise(outline?, &bar)?),
            },
            Target::Process(_) => None,
        };
        let Some((advised, cut)) = advised else { return self.run_on_telemetry(&bar, out) };
        bar.finish_and_clear();
        if self.rust {
            self.write_rust(&advised, out)?
        } else if out.is_json() {
            out.write_json(&advised)?
        } else {
            advised.write(out)?
        }
        cut.map_or(Ok(advised.outcome()), Err)
    }

    fn run_on_telemetry(&self, bar: &ProgressBar, out: &mut Output) -> Result<Outcome, Error> {
        let (marks, whole) = advise::marks(&self.source)?;
        let advised = self.advise_on_objects(bar)?;
        bar.finish_and_clear();
        if self.rust {
            let advised = advised.as_ref().ok_or_else(|| Error::NoObjects { target: self.source.clone() })?;
            self.write_rust(advised, out)?;
        } else if out.is_json() {
            out.write_json(&serde_json::json!({ "marks": marks, "trace": advised }))?;
        } else {
            write_marks(&marks, whole.is_ok(), out)?;
            advised.as_ref().map_or(Ok(()), |advised| advised.write(out))?;
        }
        let outcome = advised.map_or(Outcome::Fine, |advised| advised.outcome());
        whole.map(|()| outcome)
    }

    fn write_rust(&self, advised: &Advised, out: &mut Output) -> Result<(), Error> {
        let source = match &self.source {
            Target::Process(process) => process.to_string(),
            Target::File(path) => path.display().to_string(),
        };
        let program = rust::program(&advised.advice, &source);
        match out.is_json() {
            true => out.write_json(&program),
            false => Ok(out.write_all(program.as_bytes())?),
        }
    }

    /// The advice of the trace of objects that telemetry names, if it names any.
    #[cfg(recorder)]
    fn advise_on_objects(&self, bar: &ProgressBar) -> Result<Option<Advised>, Error> {
        let folder = tempfile::tempdir().map_err(Error::system("make a folder in", std::env::temp_dir()))?;
        let trace = folder.path().join("trace");
        match crate::trace::record::import(&self.source, &trace) {
            Err(Error::NoObjects { .. }) => Ok(None),
            // What could not be read is reported with the marks.
            Ok(_) => Ok(Some(advise(Outline::read(&trace, u64::MAX, bar)?, bar)?.0)),
            Err(error) => Err(error),
        }
    }

    /// Here traces cannot be recorded.
    #[cfg(not(recorder))]
    fn advise_on_objects(&self, _bar: &ProgressBar) -> Result<Option<Advised>, Error> {
        Ok(None)
    }
}

/// The advice of a trace, and why not all of it was read.
fn advise(outline: Outline, bar: &ProgressBar) -> Result<(Advised, Option<Error>), Error> {
    let advice = advise::advise(&outline, bar).map_err(Error::replay("go on", "tlsf"))?;
    let peers = peers(&outline.path, outline.steps, bar)?;
    let advised = Advised { advice, peak_live: outline.totals.peak_live, peers };
    let path: PathBuf = outline.path;
    Ok((advised, outline.cut.map(|error| Error::Trace { path, error })))
}

/// What general allocators take for the same trace.
fn peers(trace: &Path, steps: u64, bar: &ProgressBar) -> Result<Vec<(String, Option<i64>)>, Error> {
    let measured = PEERS.iter().map(|&peer| {
        bar.set_message(format!("replaying on {}", peer.name()));
        let outcome = replay::run_apart(trace, steps, peer, Measure::Contents, Order::Strict)?;
        Ok((peer.name(), outcome.at_peak))
    });
    measured.collect()
}

impl Advised {
    /// Whether the advice holds.
    fn outcome(&self) -> Outcome {
        if self.advice.growth[1] != 0 || self.advice.refused != 0 { Outcome::Found } else { Outcome::Fine }
    }

    /// A number of bytes as a multiple of the most that were live.
    fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.peak_live.max(1) as f64
    }

    fn write(&self, out: &mut Output) -> Result<(), Error> {
        let advice = &self.advice;
        let share = self.share(advice.commit_limit as u64);
        let limit = advice.commit_limit;
        writeln!(out, "commit limit  {limit} bytes, the expected footprint: {share:.2} of the most live")?;
        let known = self.peers.iter().filter_map(|(name, bytes)| Some((name, (*bytes)?.max(0) as u64)));
        let peers: Vec<_> =
            known.map(|(name, bytes)| format!("{name} {bytes} bytes ({:.2})", self.share(bytes))).collect();
        if !peers.is_empty() {
            writeln!(out, "peers         resident when the most were live: {}", peers.join(", "))?;
        }
        writeln!(out, "extend        the Tlsf pool by {} bytes at Init", advice.extend)?;
        writeln!(out, "cache         of each thread, size and count of each class:")?;
        let classes: Vec<_> =
            advice.classes.iter().map(|class| format!("{} x {}", class.size, class.count)).collect();
        classes.chunks(8).try_for_each(|line| writeln!(out, "              {}", line.join(", ")))?;
        self.write_largest(out)?;
        for unit in &advice.units {
            let bytes = unit.size as u64 * unit.most;
            writeln!(
                out,
                "Mfs pool      of {} bytes: {} allocations, at most {} live, {bytes} bytes",
                unit.size, unit.allocations, unit.most,
            )?;
        }
        let [first, second] = advice.growth;
        Ok(writeln!(
            out,
            "tried out     the first replay grew by {first} bytes, the second by {second}; {} requests were refused",
            advice.refused
        )?)
    }

    /// The classes whose objects take the most memory.
    fn write_largest(&self, out: &mut Output) -> Result<(), Error> {
        let mut classes: Vec<_> = self.advice.classes.iter().filter(|class| class.most != 0).collect();
        classes.sort_by_key(|class| core::cmp::Reverse(class.bytes));
        classes.truncate(5);
        classes.iter().try_for_each(|class| {
            Ok(writeln!(
                out,
                "class         of {} bytes: at most {} live, {} bytes",
                class.size, class.most, class.bytes
            )?)
        })
    }
}

fn write_marks(marks: &Marks, is_whole: bool, out: &mut Output) -> Result<(), Error> {
    let text = |mark: Mark| {
        let most =
            if mark.is_bound { " at most: it also returned memory, and events are missing" } else { "" };
        format!("{} bytes{most}", mark.bytes)
    };
    for arena in &marks.arenas {
        writeln!(out, "arena {}       commit limit {}", arena.arena, text(arena.commit_limit))?;
    }
    for pool in &marks.pools {
        let extend = text(pool.extend);
        write!(out, "pool {}.{}      {}: extend at Init by {extend}", pool.arena, pool.pool, pool.class)?;
        writeln!(out, "; {} fills of {} bytes", pool.fills, pool.filled_each)?;
    }
    for unit in &marks.units {
        writeln!(
            out,
            "Mfs pool      of {} bytes: about {:.0} allocations, as samples say",
            unit.size, unit.allocations
        )?;
    }
    // Of a recording that is cut off, the arenas may be in what is missing.
    if marks.arenas.is_empty() && is_whole {
        writeln!(out, "no arena was recorded: give an arena the hook of the telemetry when it is created")?;
    }
    Ok(())
}
