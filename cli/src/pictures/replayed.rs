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
mod tests {
    use super::*;

    fn outcome(resident: i64) -> Outcome {
        let sample = |operations, live| Sample { operations, live, resident, committed: None };
        Outcome {
            samples: vec![sample(1, 1), sample(2, 1000), sample(3, 500)],
            percentiles: Some([10, 20, 30, 40, 50, 60]),
            mean: Some(12.0),
            warm: Some(8.0),
            ..Outcome::default()
        }
    }

    /// The lines of a chart.
    fn lines(chart: &Chart) -> &[Series] {
        match &chart.content {
            Content::Steps(series) | Content::Lines(series) => series,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_chart_has_what_was_measured() {
        let (one, other) = (outcome(1000), Outcome::default());
        let picture = replayed("t".to_owned(), "a".to_owned(), &[("one", &one), ("other", &other)]);
        let Content::Bars { groups, .. } = &picture.charts[0].content else { panic!("{picture:?}") };
        assert_eq!(groups.len(), 1, "the other has no times");
        assert_eq!((&*groups[0].name, &*groups[0].values), ("one", &[12.0, 8.0][..]));
        let footprints = lines(&picture.charts[1]);
        assert_eq!(footprints[0].name, "one");
        assert_eq!((&*footprints[1].name, footprints[1].colour), ("live", LIVE));
        assert_eq!(footprints[1].points, [(1.0, 1.0), (2.0, 1000.0), (3.0, 500.0)]);
        // The first sample is of next to nothing.
        let shares = lines(&picture.charts[2]);
        assert_eq!((shares.len(), &*shares[0].points), (1, &[(2.0, 1.0), (3.0, 2.0)][..]));
        let times = lines(&picture.charts[3]);
        assert_eq!((times.len(), times[0].points.len()), (1, 5), "the other has no times");
        assert!(picture.notes.is_empty());
    }

    /// As of a replay that measures contents only.
    #[test]
    fn what_was_not_measured_is_said_in_a_note() {
        let one = Outcome { percentiles: None, mean: None, warm: None, ..outcome(1000) };
        let picture = replayed("t".to_owned(), "a".to_owned(), &[("one", &one)]);
        assert_eq!((picture.charts.len(), picture.notes.len()), (2, 2), "{picture:?}");
        assert!(picture.notes.iter().all(|note| note.ends_with(": no times were measured")), "{picture:?}");
    }

    #[test]
    fn an_allocator_has_one_colour_in_all_charts_and_what_is_live_has_its_own() {
        let (measured, untimed) = (outcome(1000), Outcome { percentiles: None, ..outcome(1000) });
        let unread = Outcome { samples: Vec::new(), ..outcome(1000) };
        let outcomes = [("one", &untimed), ("two", &measured), ("none", &unread)];
        let picture = replayed("t".to_owned(), "a".to_owned(), &outcomes);
        let mut colours = std::collections::BTreeMap::new();
        for Series { name, colour, .. } in picture.charts[1..].iter().flat_map(lines) {
            assert_eq!(*colours.entry(name.clone()).or_insert(*colour), *colour, "{name}");
        }
        let mut distinct: Vec<_> = colours.values().collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!((colours.len(), distinct.len()), (4, 4), "{colours:?}");
    }

    /// More than there are colours: those that have one colour are told apart by dashes.
    #[test]
    fn every_allocator_is_drawn_and_none_as_what_is_live() {
        let one = outcome(1);
        let names: Vec<String> = (0..12).map(|number| format!("allocator {number}")).collect();
        let outcomes: Vec<_> = names.iter().map(|name| (&**name, &one)).collect();
        let picture = replayed("t".to_owned(), "a".to_owned(), &outcomes);
        for chart in &picture.charts[1..] {
            let lines = lines(chart);
            assert!(names.iter().all(|name| lines.iter().any(|line| line.name == *name)), "{chart:?}");
            let mut colours: Vec<_> = lines.iter().map(|line| line.colour).collect();
            colours.sort_unstable();
            colours.dedup();
            // Twice as many as there are colours: with dashes and without.
            assert!(
                colours.len() == lines.len() && colours.iter().all(|colour| *colour < 2 * Theme::COLOURS)
            );
        }
    }
}
