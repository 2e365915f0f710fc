//! A summary as text: a table for each kind of thing.

use core::fmt::{self, Display};
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

use crate::summary::{Part, Summary};

/// The most rows of a table of sites.
const SITES: usize = 20;

/// A table whose first columns are texts and whose other columns are numbers.
pub(crate) struct Rows {
    table: Table,
    texts: usize,
}

impl Rows {
    pub(crate) fn new(texts: usize, titles: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(titles);
        Self { table, texts }
    }

    /// A row may have fewer numbers than there are titles.
    pub(crate) fn add(&mut self, texts: &[&dyn Display], numbers: &[u64]) {
        let texts = texts.iter().map(|text| text.to_string());
        self.table.add_row(texts.chain(numbers.iter().map(u64::to_string)).collect::<Vec<_>>());
    }

    pub(crate) fn write(mut self, title: impl Display, out: &mut dyn Write) -> io::Result<()> {
        if self.table.is_empty() {
            return Ok(());
        }
        for column in self.table.column_iter_mut().skip(self.texts) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "\n{title}")?;
        self.table.lines().try_for_each(|line| writeln!(out, " {}", line.trim_end()))
    }
}

/// Shows a thing that is gone.
struct Gone(bool);

impl Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "" } else { "gone" })
    }
}

/// Writes a summary.
pub(crate) fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    write_head(summary, out)?;
    write_contract(summary, out)?;
    write_memory(summary, out)?;
    write_samples(summary, out)?;
    write_events(summary, out)?;
    write_losses(summary, out)
}

fn write_head(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "process {}", summary.about.process)?;
    write!(out, ", {}", if summary.is_closed { "has ended" } else { "has not closed its recording" })?;
    match &summary.phase {
        Some(phase) => writeln!(out, ", phase {}", phase.phase)?,
        None => writeln!(out, ", no contract")?,
    }
    let part = match summary.part {
        Part::SteadyState => "events of the steady state",
        Part::All => "all events",
    };
    writeln!(out, "{part}: {} in {:.3} s", summary.events.values().sum::<u64>(), summary.seconds)?;
    let mut phases = Rows::new(2, &["from", "to", "after ms"]);
    let begin = summary.phases.first().and_then(|first| first.ns);
    for change in &summary.phases {
        let after = change.ns.zip(begin).map_or(0, |(ns, begin)| ns.saturating_sub(begin) / 1_000_000);
        phases.add(&[&change.from, &change.to], &[after]);
    }
    phases.write("phases", out)
}

fn write_contract(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let titles = ["thread", "class", "events", "bytes", "armed", "armed bytes", "armed, excused"];
    let mut tallies = Rows::new(2, &titles);
    for row in &summary.tallies {
        let tally = &row.tally;
        tallies.add(
            &[&row.shown_name(), &tally.class],
            &[tally.count, tally.bytes, tally.armed_count, tally.armed_bytes, tally.armed_excused],
        );
    }
    tallies.write("tallies of the contract, of the whole run", out)?;
    let mut violations = Rows::new(4, &["thread", "kind", "class", "site", "count", "bytes"]);
    for row in &summary.violations {
        violations.add(&[&row.name, &row.kind, &row.class, &row.site], &[row.count, row.bytes]);
    }
    violations.write("violations", out)
}

fn write_memory(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let titles = ["", "arena", "range", "committed", "grown", "shrunk", "refused", "collections", "freed"];
    let mut arenas = Rows::new(1, &titles);
    for arena in &summary.arenas {
        arenas.add(
            &[&Gone(arena.is_live)],
            &[
                arena.arena,
                arena.bytes,
                arena.committed(),
                arena.grown,
                arena.shrunk,
                arena.refused,
                arena.collections,
                arena.freed,
            ],
        );
    }
    arenas.write("arenas (bytes)", out)?;
    let titles = ["", "class", "arena", "pool", "held", "noted", "noted free", "fills", "filled", "emptied"];
    let mut pools = Rows::new(2, &titles);
    for pool in &summary.pools {
        pools.add(
            &[&Gone(pool.is_live), &pool.class],
            &[
                pool.arena,
                pool.pool,
                pool.held(),
                pool.total,
                pool.free,
                pool.fills,
                pool.filled,
                pool.emptied,
            ],
        );
    }
    pools.write("pools (bytes)", out)?;
    let titles = ["", "buffer", "arena", "pool", "room", "fills", "in part", "trips", "flips", "failed"];
    let mut points = Rows::new(2, &titles);
    for row in &summary.points {
        let point = &row.point;
        points.add(
            &[&Gone(point.is_live), &format_args!("{:#x}", point.buffer)],
            &[
                point.arena,
                point.pool,
                point.room,
                point.fills,
                row.fills_in_part,
                point.trips,
                point.flips,
                point.commits_failed,
            ],
        );
    }
    points.write("points", out)
}

fn write_samples(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut pools =
        Rows::new(1, &["class", "arena", "pool", "bytes", "standard error", "objects", "samples"]);
    for pool in &summary.samples {
        pools.add(
            &[&pool.class],
            &[pool.arena, pool.pool, pool.bytes, pool.standard_error, pool.objects, pool.samples],
        );
    }
    pools.write("allocated, estimated from all samples of the whole run", out)?;
    let titles = ["site", "thread", "type", "bytes", "from", "to", "objects", "samples"];
    let mut sites = Rows::new(3, &titles);
    for row in summary.sites.iter().take(SITES) {
        // These casts saturate.
        let numbers = [row.bytes as u64, row.at_least, row.at_most, row.objects as u64, row.samples];
        sites.add(&[&row.site, &row.name, &row.type_name], &numbers);
    }
    sites.write("allocated, estimated from samples that were read; the interval has 95 %", out)?;
    match summary.sites.len().checked_sub(SITES) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(out, " and {more} more, with --json"),
    }
}

fn write_events(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let mut kinds = Rows::new(1, &["event", "count"]);
    summary.events.iter().for_each(|(kind, count)| kinds.add(&[kind], &[*count]));
    kinds.write("events", out)?;
    let mut threads = Rows::new(1, &["thread", "tid", "events", "dropped"]);
    for thread in summary.threads.iter().filter(|thread| thread.events + thread.dropped > 0) {
        threads.add(&[&thread.name], &[thread.thread, thread.events, thread.dropped]);
    }
    threads.write("threads, whole run", out)
}

fn write_losses(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let losses = &summary.losses;
    let all = [
        (losses.events_missed, "events were overwritten before they were read, or are damaged"),
        (losses.events_dropped, "events were dropped, because their ring was in use"),
        (losses.left_out, "things found no entry in a table"),
        (losses.unsteady, "entries changed whenever they were read"),
    ];
    for (count, what) in all.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "\n{count} {what}")?;
    }
    for path in &summary.replaced {
        writeln!(out, "\n{} is not the file that the process loaded: no names from it", path.display())?;
    }
    Ok(())
}
