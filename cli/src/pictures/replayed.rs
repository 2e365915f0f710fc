//! What allocators took when a trace was replayed on them: footprint, fragmentation over time, and times of operations.

use crate::plotting::{Axis, Chart, Content, Group, Picture, Series, Theme, Unit};
use crate::trace::replay::{Outcome, Sample};

/// The colour of the live bytes. No allocator has it.
const LIVE: usize = Theme::COLOURS - 1;

/// Where each of [`Outcome::percentiles`] but the longest is on an axis of nines.
const NINES: [f64; 5] = [core::f64::consts::LOG10_2, 1.0, 2.0, 3.0, 4.0];

/// The outcomes of a replay, each with the name of its allocator.
pub(crate) fn replayed(title: String, about: String, outcomes: &[(&str, &Outcome)]) -> Picture {
    let charts = vec![
        Chart {
            title: "Mean time of an operation, at the first replay and at the second, which finds its memory"
                .to_owned(),
            x: Axis::new("time", Unit::Nanoseconds),
            y: Axis::new("", Unit::Names),
            moments: Vec::new(),
            content: Content::Bars {
                names: ["first", "warm"].map(str::to_owned).to_vec(),
                groups: means(outcomes),
            },
            if_empty: "no times were measured".to_owned(),
        },
        Chart {
            title: "Resident bytes, and bytes that were live".to_owned(),
            x: Axis::new("operations", Unit::Count),
            y: Axis::new("footprint", Unit::Bytes),
            moments: Vec::new(),
            content: Content::Steps(footprints(outcomes)),
            if_empty: "no footprint was read".to_owned(),
        },
        Chart {
            title: "Fragmentation over time: resident bytes over those that were live".to_owned(),
            x: Axis::new("operations", Unit::Count),
            y: Axis::new("resident over live", Unit::Share),
            moments: Vec::new(),
            content: Content::Lines(of_each(outcomes, fragmentation)),
            if_empty: "no footprint was read".to_owned(),
        },
        Chart {
            title: "Time of an operation, with that of reading the clock".to_owned(),
            x: Axis::new("operations that took less", Unit::Nines),
            y: Axis::logarithmic("time", Unit::Nanoseconds),
            moments: Vec::new(),
            content: Content::Lines(of_each(outcomes, times)),
            if_empty: "no times were measured".to_owned(),
        },
    ];
    Picture::new(title, about, charts, Vec::new())
}

/// The mean times of each allocator that has any.
fn means(outcomes: &[(&str, &Outcome)]) -> Vec<Group> {
    let group = |(name, outcome): &(&str, &Outcome)| Group {
        name: (*name).to_owned(),
        values: [outcome.mean, outcome.warm].into_iter().flatten().collect(),
    };
    outcomes.iter().map(group).filter(|group| !group.values.is_empty()).collect()
}

/// The number of an allocator's line, which is never that of the live bytes.
const fn line(allocator: usize) -> usize {
    allocator + allocator / LIVE
}

fn footprints(outcomes: &[(&str, &Outcome)]) -> Vec<Series> {
    let live = outcomes.iter().find(|(_, outcome)| !outcome.samples.is_empty());
    let live = live.map(|(_, outcome)| Series {
        name: "live".to_owned(),
        colour: LIVE,
        points: outcome.samples.iter().map(|sample| (sample.operations as f64, sample.live as f64)).collect(),
    });
    let resident = |sample: &Sample| (sample.operations as f64, sample.resident.max(0) as f64);
    let footprints = of_each(outcomes, |outcome| outcome.samples.iter().map(resident).collect());
    footprints.into_iter().chain(live).collect()
}

/// A series for each outcome that has any points.
fn of_each(outcomes: &[(&str, &Outcome)], points: impl Fn(&Outcome) -> Vec<(f64, f64)>) -> Vec<Series> {
    let series = outcomes.iter().zip(0..).map(|((name, outcome), allocator)| Series {
        name: (*name).to_owned(),
        colour: line(allocator),
        points: points(outcome),
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

/// Only as long as a quarter of the most is live: divided by next to nothing, little is much.
fn fragmentation(outcome: &Outcome) -> Vec<(f64, f64)> {
    let most = outcome.samples.iter().map(|sample| sample.live).max().unwrap_or(0);
    let enough = outcome.samples.iter().filter(|sample| sample.live > most / 4);
    let share = |sample: &Sample| sample.resident.max(0) as f64 / sample.live as f64;
    enough.map(|sample| (sample.operations as f64, share(sample))).collect()
}

fn times(outcome: &Outcome) -> Vec<(f64, f64)> {
    let times = outcome.percentiles.iter().flatten();
    NINES.into_iter().zip(times.map(|&time| time as f64)).collect()
}

#[cfg(test)]
mod tests;
