//! A summary as text: a table for each kind of thing.

use core::fmt::{self, Display};
use std::io::{self, Write};

use crate::grid::Grid;
use crate::summary::{Part, Summary, Until};

/// The most rows of a table of sites in a text.
const SITES: usize = 20;

/// Shows a thing that is gone.
struct Gone(bool);

impl Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "" } else { "gone" })
    }
}

/// Writes a summary.
pub(crate) fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n{}", head(summary), part(summary))?;
    phases(summary).write(out)?;
    tallies(summary).write(out)?;
    violations(summary).write(out)?;
    arenas(summary).write(out)?;
    pools(summary).write(out)?;
    points(summary).write(out)?;
    samples(summary).write(out)?;
    let mut sites = sites(summary);
    let more = sites.rows.len().saturating_sub(SITES);
    sites.rows.truncate(SITES);
    sites.write(out)?;
    if more > 0 {
        writeln!(out, " and {more} more, with --json")?;
    }
    events(summary).write(out)?;
    threads(summary).write(out)?;
    losses(summary).iter().try_for_each(|loss| writeln!(out, "\n{loss}"))
}

/// The process and its phase.
pub(crate) fn head(summary: &Summary) -> String {
    let phase = match (&summary.phase, summary.phases.last()) {
        (Some(phase), _) => format!("phase {}", phase.phase),
        (None, Some(last)) => format!("last phase {}", last.to),
        (None, None) if summary.is_watched => "watched from outside, so without phases".to_owned(),
        (None, None) if summary.is_cut() => "contract not known".to_owned(),
        (None, None) => "no contract".to_owned(),
    };
    format!("process {}, {}, {phase}", summary.about.process, ending(summary))
}

/// Whether the process has ended, and how.
pub(crate) fn ending(summary: &Summary) -> &'static str {
    match (summary.is_closed, summary.is_gone, summary.is_watched) {
        (true, ..) => "has ended",
        (false, true, _) => "has ended without closing its recording",
        (false, false, true) => "was running at the end of the watch",
        (false, false, false) if summary.about.is_captured => {
            "had not closed its recording when it was captured"
        }
        (false, false, false) => "has not closed its recording",
    }
}

/// Which events count, and how many there were.
pub(crate) fn part(summary: &Summary) -> String {
    let part = match summary.part {
        Part::SteadyState => "events of the steady state",
        Part::All => "all events",
    };
    let until = match summary.until {
        Until::End => "",
        Until::Read if summary.about.is_captured => ", still running then",
        Until::Read => ", still running",
        Until::LastEvent => " up to the last one",
    };
    format!("{part}: {} in {:.3} s{until}", summary.events.values().sum::<u64>(), summary.seconds)
}

fn phases(summary: &Summary) -> Grid {
    let mut grid = Grid::new("phases", 2, &["from", "to", "after ms"]);
    let begin = summary.phases.first().and_then(|first| first.ns);
    for change in &summary.phases {
        let after = change.ns.zip(begin).map_or(0, |(ns, begin)| ns.saturating_sub(begin) / 1_000_000);
        grid.add(&[&change.from, &change.to], &[after]);
    }
    grid
}

pub(crate) fn tallies(summary: &Summary) -> Grid {
    let columns = &["thread", "class", "events", "bytes", "armed", "armed bytes", "armed, excused"];
    let mut grid = Grid::new("tallies of the contract, of the whole run", 2, columns);
    for row in &summary.tallies {
        let tally = &row.tally;
        let armed = [tally.armed_count, tally.armed_bytes, tally.armed_excused];
        grid.add(&[&row.shown_name(), &tally.class], &[&[tally.count, tally.bytes][..], &armed].concat());
    }
    grid
}

pub(crate) fn violations(summary: &Summary) -> Grid {
    let mut grid = Grid::new("violations", 4, &["thread", "kind", "class", "site", "count", "bytes"]);
    for row in &summary.violations {
        grid.add(&[&row.name, &row.kind, &row.class, &row.site], &[row.count, row.bytes]);
    }
    grid
}

pub(crate) fn arenas(summary: &Summary) -> Grid {
    let columns = &["", "arena", "range", "committed", "grown", "shrunk", "refused", "collections", "freed"];
    let mut grid = Grid::new("arenas (bytes)", 1, columns);
    for arena in &summary.arenas {
        let sizes = [arena.arena, arena.bytes, arena.committed(), arena.grown, arena.shrunk];
        let counts = [arena.refused, arena.collections, arena.freed];
        grid.add(&[&Gone(arena.is_live)], &[&sizes[..], &counts].concat());
    }
    grid
}

pub(crate) fn pools(summary: &Summary) -> Grid {
    let columns =
        &["", "class", "arena", "pool", "held", "noted", "noted free", "fills", "filled", "emptied"];
    let mut grid = Grid::new("pools (bytes)", 2, columns);
    for pool in &summary.pools {
        let sizes = [pool.arena, pool.pool, pool.held(), pool.total, pool.free];
        let fills = [pool.fills, pool.filled, pool.emptied];
        grid.add(&[&Gone(pool.is_live), &pool.class], &[&sizes[..], &fills].concat());
    }
    grid
}

pub(crate) fn points(summary: &Summary) -> Grid {
    let columns = &["", "buffer", "arena", "pool", "room", "fills", "in part", "trips", "flips", "failed"];
    let mut grid = Grid::new("points", 2, columns);
    for row in &summary.points {
        let point = &row.point;
        let sizes = [point.arena, point.pool, point.room, point.fills, row.fills_in_part];
        let counts = [point.trips, point.flips, point.commits_failed];
        let buffer = format!("{:#x}", point.buffer);
        grid.add(&[&Gone(point.is_live), &buffer], &[&sizes[..], &counts].concat());
    }
    grid
}

pub(crate) fn samples(summary: &Summary) -> Grid {
    let columns = &["class", "arena", "pool", "bytes", "standard error", "objects", "samples"];
    let mut grid = Grid::new("allocated, estimated from all samples of the whole run", 1, columns);
    for pool in &summary.samples {
        let numbers = [pool.arena, pool.pool, pool.bytes, pool.standard_error, pool.objects, pool.samples];
        grid.add(&[&pool.class], &numbers);
    }
    grid
}

pub(crate) fn sites(summary: &Summary) -> Grid {
    let columns = &["site", "thread", "type", "bytes", "from", "to", "objects", "samples"];
    let title = "allocated, estimated from samples that were read; the interval has 95 %";
    let mut grid = Grid::new(title, 3, columns);
    for row in &summary.sites {
        // These casts saturate.
        let numbers = [row.bytes as u64, row.at_least, row.at_most, row.objects as u64, row.samples];
        grid.add(&[&row.site, &row.name, &row.type_name], &numbers);
    }
    grid
}

pub(crate) fn events(summary: &Summary) -> Grid {
    let mut grid = Grid::new("events", 1, &["event", "count"]);
    summary.events.iter().for_each(|(kind, count)| grid.add(&[kind], &[*count]));
    grid
}

pub(crate) fn threads(summary: &Summary) -> Grid {
    let mut grid = Grid::new("threads, whole run", 1, &["thread", "tid", "events", "dropped"]);
    for thread in &summary.threads {
        grid.add(&[&thread.name], &[thread.thread, thread.events, thread.dropped]);
    }
    grid
}

/// What is not in the summary, a sentence each.
pub(crate) fn losses(summary: &Summary) -> Vec<String> {
    let losses = &summary.losses;
    let missed = match losses.lasting_missed {
        Some(_) => "events were overwritten before they were read, or are damaged",
        None => {
            "events were overwritten before they were read, or are damaged; violations, alarms and phases may be among them"
        }
    };
    let all = [
        (losses.events_missed, missed),
        (losses.lasting_missed.unwrap_or(0), "of them are violations, alarms or phases"),
        (losses.events_dropped, "events were dropped, because their ring was in use"),
        (losses.left_out, "things found no entry in a table"),
        (losses.unsteady, "entries changed whenever they were read"),
    ];
    let counted =
        all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let replaced = summary.replaced.iter();
    let replaced =
        replaced.map(|path| format!("{path} is not the file that the process loaded: no names from it"));
    counted.chain(replaced).collect()
}
