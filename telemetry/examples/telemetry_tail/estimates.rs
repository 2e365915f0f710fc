//! What samples say of all that a process allocates: of each pool from sums that are never lost,
//! and group by group from the events that were read.

use core::cmp::Reverse;
use core::fmt::{self, Display};
use std::io::{self, Write};

use tripoint_telemetry::format::OTHER_POOLS;
use tripoint_telemetry::reader::{
    CodeAddresses, Item, LoadedObject, Reader, RecordedSample, Start, Table, Text,
};
use tripoint_telemetry::{Confidence, Estimate, Groups, Interval, Window};

/// Groups of a table; all others are estimated together.
const GROUPS: usize = 256;

/// By what bytes are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum By {
    #[default]
    Pool,
    Type,
    Site,
    Size,
    Thread,
}

impl By {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "pool" => Some(Self::Pool),
            "type" => Some(Self::Type),
            "site" => Some(Self::Site),
            "size" => Some(Self::Size),
            "thread" => Some(Self::Thread),
            _ => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Type => "type",
            Self::Site => "site",
            Self::Size => "size",
            Self::Thread => "thread",
        }
    }

    fn key(self, sample: &RecordedSample) -> Key {
        match self {
            Self::Pool => Key::Pool(sample.arena, sample.pool.unwrap_or(0), sample.class),
            Self::Type => Key::Type(sample.type_name),
            Self::Site => Key::Site(sample.site),
            Self::Size => Key::Size(sample.size_class()),
            Self::Thread => Key::Thread(sample.thread),
        }
    }
}

/// What the objects of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Pool(u64, u64, Text),
    Type(Text),
    Site(CodeAddresses),
    Size(u64),
    Thread(u32),
}

/// A key, shown with the names of the objects that its code addresses are in.
struct Named<'k>(&'k Key, &'k Table<LoadedObject>);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(key, objects) = self;
        match key {
            Key::Pool(OTHER_POOLS, ..) => write!(f, "all pools that found no entry"),
            Key::Pool(_, 0, _) => write!(f, "the global allocator, or a pool that is not known"),
            Key::Pool(arena, pool, class) => write!(f, "arena {arena} pool {pool} {class}"),
            Key::Type(name) if name.kept_bytes().is_empty() => write!(f, "not known"),
            Key::Type(name) => write!(f, "{name}"),
            Key::Site(site) if site.as_slice().is_empty() => write!(f, "not known"),
            // All frames: the innermost are the sampler's own, and the same for all sites.
            Key::Site(site) => site.as_slice().iter().try_for_each(|frame| match objects.place(*frame) {
                Some(place) => write!(f, "\n    at {place}"),
                None => write!(f, "\n    at {frame:#x}"),
            }),
            Key::Size(size) => write!(f, "up to {size} B"),
            Key::Thread(thread) => write!(f, "{thread}"),
        }
    }
}

fn write_title(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out, "{:>16} {:>16} {:>16} {:>14} {:>9}  {title}", "bytes", "from", "to", "objects", "samples")
}

/// One row, with an interval that holds the truth with 95 % confidence.
fn write_row(out: &mut dyn Write, name: impl Display, estimate: &Estimate) -> io::Result<()> {
    let confidence = Confidence::PERCENT_95;
    // With several means there are no limits.
    let limits = estimate.limits(confidence, Window::ANY);
    let Interval { low, high } = limits.unwrap_or_else(|_| estimate.interval(confidence));
    let (bytes, objects, samples) = (estimate.bytes(), estimate.objects(), estimate.samples());
    writeln!(out, "{bytes:>16.0} {low:>16} {high:>16} {objects:>14.0} {samples:>9}  {name}")
}

/// A table with the groups that have the most bytes first.
fn write_groups(
    out: &mut dyn Write,
    by: By,
    groups: &Groups<Key, GROUPS>,
    objects: &Table<LoadedObject>,
) -> io::Result<()> {
    let mut rows: Vec<_> = groups.iter().collect();
    rows.sort_by(|(_, one), (_, other)| other.bytes().total_cmp(&one.bytes()));
    write_title(out, by.title())?;
    rows.into_iter().try_for_each(|(key, estimate)| write_row(out, Named(key, objects), estimate))?;
    if groups.others().samples() > 0 {
        write_row(out, "all others", groups.others())?;
    }
    Ok(())
}

/// The samples whose events are still there.
fn read_samples(reader: &Reader) -> Vec<RecordedSample> {
    let mut samples = Vec::new();
    let mut events = reader.events(Start::Oldest);
    while let Some(item) = events.poll() {
        if let Item::Event(event) = item {
            samples.extend(event.sample());
        }
    }
    samples
}

/// What share of all samples the events were read of, and what that means.
fn write_share(out: &mut dyn Write, by: By, read: u64, all: u64) -> io::Result<()> {
    let lost = all.saturating_sub(read);
    if lost == 0 {
        return writeln!(out, "\nNo sample was lost.");
    }
    let share = 100.0 * lost as f64 / all as f64;
    writeln!(
        out,
        "\nWARNING: the events of {lost} of {all} samples ({share:.1} %) were lost or switched off."
    )?;
    writeln!(out, "The estimates by {} are of the other {read} alone, and so they are too low.", by.title())
}

/// Writes the estimates.
pub(super) fn show(reader: &Reader, by: By, out: &mut dyn Write) -> io::Result<()> {
    let samples = if by == By::Pool { Vec::new() } else { read_samples(reader) };
    // Afterwards, so that each sample that was read is in the sums as well.
    let mut sums = reader.counters()?.samples;
    let Some(total) = sums.total() else { return writeln!(out, "no samples") };
    let objects = reader.objects()?;
    if by == By::Pool {
        sums.entries.sort_by_key(|pool| Reverse(pool.estimate.samples()));
        write_title(out, by.title())?;
        for pool in &sums.entries {
            let key = Key::Pool(pool.arena, pool.pool, pool.class);
            write_row(out, Named(&key, &objects), &pool.estimate)?;
        }
    } else if let Some(first) = samples.first() {
        let mut groups = Box::new(Groups::new(first.sample.mean()));
        samples.iter().for_each(|sample| groups.add(by.key(sample), &sample.sample));
        write_groups(out, by, &groups, &objects)?;
    }
    write_row(out, "in all, from sums of which nothing is lost", &total)?;
    if by == By::Pool { Ok(()) } else { write_share(out, by, samples.len() as u64, total.samples()) }
}
