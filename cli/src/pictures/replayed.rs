//! What allocators took when a trace was replayed on them: footprint, fragmentation over time, and times of operations.

use crate::plotting::{Axis, Chart, Content, Picture, Series, Theme, Unit};
use crate::trace::replay::{Outcome, Sample};

/// Allocators that a chart has at most: one colour is left, which is that of the live bytes.
const MOST: usize = Theme::COLOURS - 1;

/// Where each of [`Outcome::percentiles`] but the longest is on an axis of nines.
const NINES: [f64; 5] = [core::f64::consts::LOG10_2, 1.0, 2.0, 3.0, 4.0];

/// The outcomes of a replay, each with the name of its allocator.
pub(crate) fn replayed(title: String, about: String, outcomes: &[(&str, &Outcome)]) -> Picture {
    let mut notes = Vec::new();
    if outcomes.len() > MOST {
        notes.push(format!("Each chart has the first {MOST} only: name those that matter with --with."));
    }
    let charts = vec![
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
    Picture { title, about, charts, notes }
}

fn footprints(outcomes: &[(&str, &Outcome)]) -> Vec<Series> {
    let live = outcomes.iter().find(|(_, outcome)| !outcome.samples.is_empty());
    let live = live.map(|(_, outcome)| Series {
        name: "live".to_owned(),
        colour: MOST,
        points: outcome.samples.iter().map(|sample| (sample.operations as f64, sample.live as f64)).collect(),
    });
    let resident = |sample: &Sample| (sample.operations as f64, sample.resident.max(0) as f64);
    let footprints = of_each(outcomes, |outcome| outcome.samples.iter().map(resident).collect());
    footprints.into_iter().chain(live).collect()
}

/// A series for each outcome that has any points.
fn of_each(outcomes: &[(&str, &Outcome)], points: impl Fn(&Outcome) -> Vec<(f64, f64)>) -> Vec<Series> {
    let series = outcomes.iter().zip(0..MOST).map(|((name, outcome), colour)| Series {
        name: (*name).to_owned(),
        colour,
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
mod tests {
    use super::*;

    fn outcome(resident: i64) -> Outcome {
        let sample = |operations, live| Sample { operations, live, resident, committed: None };
        Outcome {
            samples: vec![sample(1, 1), sample(2, 1000), sample(3, 500)],
            percentiles: Some([10, 20, 30, 40, 50, 60]),
            ..Outcome::default()
        }
    }

    #[test]
    fn a_chart_has_what_was_measured() {
        let (one, other) = (outcome(1000), Outcome::default());
        let picture = replayed("t".to_owned(), "a".to_owned(), &[("one", &one), ("other", &other)]);
        let points = |chart: usize| match &picture.charts[chart].content {
            Content::Steps(series) | Content::Lines(series) => {
                series.iter().map(|series| (&*series.name, series.points.clone())).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        let footprints = points(0);
        assert_eq!(footprints[0].0, "one");
        assert_eq!(footprints[1], ("live", vec![(1.0, 1.0), (2.0, 1000.0), (3.0, 500.0)]));
        // The first sample is of next to nothing.
        assert_eq!(points(1), [("one", vec![(2.0, 1.0), (3.0, 2.0)])]);
        assert_eq!(points(2)[0].1.len(), 5);
        assert_eq!(points(2).len(), 1, "the other has no times");
        assert!(picture.notes.is_empty());
    }

    #[test]
    fn an_allocator_has_one_colour_in_all_charts_and_what_is_live_has_its_own() {
        let (measured, untimed) = (outcome(1000), Outcome { percentiles: None, ..outcome(1000) });
        let unread = Outcome { samples: Vec::new(), ..outcome(1000) };
        let outcomes = [("one", &untimed), ("two", &measured), ("none", &unread)];
        let picture = replayed("t".to_owned(), "a".to_owned(), &outcomes);
        let mut colours = std::collections::BTreeMap::new();
        for chart in &picture.charts {
            for (name, colour) in chart.content.legend() {
                assert_eq!(*colours.entry(name.to_owned()).or_insert(colour), colour, "{name}");
            }
        }
        let mut distinct: Vec<_> = colours.values().collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!((colours.len(), distinct.len()), (4, 4), "{colours:?}");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let one = outcome(1);
        let picture = replayed("t".to_owned(), "a".to_owned(), &[("same", &one); 9]);
        assert!(picture.notes[0].contains("first 7"));
    }
}
