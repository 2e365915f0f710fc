//! What `tripoint plot` draws ([design/cli.md `.plot`](crate::design::cli)).
//!
//! ```text
//! observed.rs       what a recording has over time: sizes, fills, durations, collections
//! track.rs          a size over time, of changes and of values that are known
//! extents.rs        the addresses that pools have
//! names.rs          the names of pools
//!
//! of a recording:   footprint.rs fragmentation.rs map.rs fills.rs latency.rs flame.rs collections.rs
//! of a trace:       live.rs
//! of a replay:      replayed.rs
//! of a program:     given.rs
//! ```

mod collections;
mod extents;
mod fills;
mod flame;
mod footprint;
mod fragmentation;
mod given;
mod latency;
mod live;
mod map;
mod names;
mod observed;
mod replayed;
mod track;

use clap::ValueEnum;

use crate::plotting::Picture;
use crate::summary::Summary;
use crate::words::minute;

pub(crate) use given::given;
pub(crate) use live::live;
pub(crate) use observed::Observed;
pub(crate) use replayed::replayed;

/// The title of a picture: what it is, of which program, and when that was recorded, as far as it is known.
pub(crate) fn titled(what: &str, program: Option<&str>, made: Option<u64>) -> String {
    let program = program.map_or_else(String::new, |program| format!(" of {program}"));
    let made = made.map_or_else(String::new, |made| format!(", {}", minute(made)));
    format!("{what}{program}{made}")
}

/// What is drawn of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Memory over time: in use, free in pools, spare; and by pool. Of a trace: live bytes and objects
    Footprint,
    /// How fragmented the free memory of pools is, and how much of the committed memory is not in use
    Fragmentation,
    /// Which pool has which addresses, and how full it is
    Map,
    /// Fills and empties of allocation points by thread
    Fills,
    /// How long stops, waits and collections of heaps took
    Latency,
    /// Allocated bytes by call stack, estimated from samples
    Flame,
    /// What collections kept and freed
    Collections,
}

impl Kind {
    /// The picture of a recording.
    pub(crate) fn of(self, observed: &Observed, summary: &Summary) -> Picture {
        let charts = match self {
            Self::Footprint => footprint::charts(observed),
            Self::Fragmentation => fragmentation::charts(observed),
            Self::Map => map::charts(observed),
            Self::Fills => fills::charts(observed, summary),
            Self::Latency => latency::charts(observed),
            Self::Flame => flame::charts(&summary.stacks),
            Self::Collections => collections::charts(observed),
        };
        let mut notes = crate::tables::losses(summary);
        notes.extend(summary.faults.iter().cloned());
        match self {
            Self::Map => notes.extend(map::notes(observed)),
            Self::Latency => notes.extend(latency::notes(observed)),
            _ => {}
        }
        let title = match self {
            Self::Footprint => "Footprint",
            Self::Fragmentation => "Fragmentation",
            Self::Map => "Map of the address range",
            Self::Fills => "Fills and empties",
            Self::Latency => "Durations of stops and collections",
            Self::Flame => "Allocated bytes by call stack",
            Self::Collections => "Collections",
        };
        let title = titled(title, summary.program.as_deref(), summary.about.made);
        Picture::new(title, crate::tables::head(summary), charts, notes)
    }

    /// The name, as it is written in arguments and names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Footprint => "footprint",
            Self::Fragmentation => "fragmentation",
            Self::Map => "map",
            Self::Fills => "fills",
            Self::Latency => "latency",
            Self::Flame => "flame",
            Self::Collections => "collections",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (design/cli.md `.plot.titles`)
    #[test]
    fn a_title_says_what_of_which_program_and_when_as_far_as_it_is_known() {
        let program = Some("cc1plus");
        assert_eq!(titled("Footprint", program, Some(0)), "Footprint of cc1plus, 1970-01-01 00:00 UTC");
        assert_eq!(titled("Footprint", program, None), "Footprint of cc1plus");
        assert_eq!(titled("Footprint", None, None), "Footprint");
    }
}
