//! How long stops, waits and collections took.

use super::observed::{DURATIONS, Observed};
use crate::plotting::{Axis, Chart, Content, Group, Series, Unit};
use crate::words::counted;

/// The share of all durations that was not longer than a bar, and the fewest durations that have such a bar.
const BARS: [(&str, f64, usize); 4] =
    [("median", 0.5, 1), ("longest", 1.0, 1), ("90 %", 0.9, 10), ("99 %", 0.99, 100)];

/// The fewest durations whose distribution is a line.
const FEWEST: usize = 20;

pub(super) fn charts(observed: &Observed) -> Vec<Chart> {
    let kinds = kinds(observed);
    let lines = kinds.iter().filter(|(_, durations)| durations.len() >= FEWEST).zip(0..);
    let lines = lines.map(|((name, durations), colour)| Series {
        name: name.clone(),
        colour,
        points: distribution(durations),
    });
    let if_empty = "the recording has no stops of heaps; tripoint replay has times of operations".to_owned();
    let groups: Vec<_> = kinds.iter().map(|(name, durations)| group(name, durations)).collect();
    let most = groups.iter().map(|group| group.values.len()).max().unwrap_or(0);
    let bars = Chart {
        title: "Durations: the median, the longest, and what most did not exceed".to_owned(),
        x: Axis::logarithmic("time", Unit::Nanoseconds),
        y: Axis::new("", Unit::Names),
        moments: Vec::new(),
        content: Content::Bars {
            names: BARS[..most].iter().map(|(name, ..)| (*name).to_owned()).collect(),
            groups,
        },
        if_empty: if_empty.clone(),
    };
    let lines = Chart {
        title: "Durations, the shortest first".to_owned(),
        x: Axis::spanning("share that took at most this long", Unit::Nines, (0.0, 1.0)),
        y: Axis::logarithmic("time", Unit::Nanoseconds),
        moments: Vec::new(),
        content: Content::Lines(lines.collect()),
        if_empty: match kinds.is_empty() {
            true => if_empty,
            false => format!("there are fewer than {FEWEST} of each kind"),
        },
    };
    vec![bars, lines]
}

/// Which bars are missing, and why.
pub(super) fn notes(observed: &Observed) -> Vec<String> {
    let kinds = kinds(observed);
    let note = |(bar, _, fewest): &(&str, f64, usize)| {
        let few: Vec<_> = kinds.iter().filter(|(_, durations)| durations.len() < *fewest).collect();
        let names: Vec<_> = few.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(", ");
        (!few.is_empty()).then(|| format!("No bar of {bar} for fewer than {fewest} durations: {names}"))
    };
    BARS.iter().filter_map(note).collect()
}

/// The kinds of durations that there are, each with how often it was, and the durations in ns, the shortest first.
fn kinds(observed: &Observed) -> Vec<(String, Vec<u64>)> {
    let kinds = DURATIONS.iter().zip(&observed.durations).filter(|(_, durations)| !durations.is_empty());
    let sorted = kinds.map(|((name, ..), durations)| {
        let mut durations = durations.clone();
        durations.sort_unstable();
        (format!("{name} ({})", counted(durations.len() as u64, "time")), durations)
    });
    sorted.collect()
}

/// The bars of one kind, as many as it has durations for.
fn group(name: &str, durations: &[u64]) -> Group {
    let bars = BARS.iter().take_while(|(_, _, fewest)| durations.len() >= *fewest);
    Group { name: name.to_owned(), values: bars.map(|(_, share, _)| quantile(durations, *share)).collect() }
}

/// The shortest duration that this share of all does not exceed.
fn quantile(sorted: &[u64], share: f64) -> f64 {
    // This cast saturates.
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).map_or(0.0, |ns| shown(*ns))
}

/// A time that is below what the clock resolves has a place, too.
fn shown(ns: u64) -> f64 {
    ns.max(1) as f64
}

/// The durations by the share of all that is not longer, as nines. The longest of n is that of n in n + 1.
fn distribution(sorted: &[u64]) -> Vec<(f64, f64)> {
    let all = sorted.len() as f64 + 1.0;
    let nines = |index: usize| -(1.0 - (index as f64 + 1.0) / all).log10();
    sorted.iter().enumerate().map(|(index, ns)| (nines(index), shown(*ns))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_and_the_longest_have_their_places() {
        let points = distribution(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(points.len(), 9);
        assert!((points[8].0 - 1.0).abs() < 1e-9 && points[8].1 == 9.0, "{points:?}");
        assert!(points.is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1));
    }

    /// The values are counted by hand.
    #[test]
    fn a_bar_is_what_a_share_did_not_exceed_and_few_durations_have_few_bars() {
        let six = [1_000, 2_000, 3_000, 4_000, 5_000, 6_000];
        assert_eq!(group("it", &six).values, [3_000.0, 6_000.0]);
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(group("it", &hundred).values, [50.0, 100.0, 90.0, 99.0]);
        assert_eq!(group("it", &hundred[..10]).values, [5.0, 10.0, 9.0]);
        assert_eq!(group("it", &[0]).values, [1.0, 1.0]);
    }

    #[test]
    fn few_durations_are_bars_and_a_note_says_what_is_missing() {
        let mut observed = Observed::default();
        observed.durations[1] = vec![7, 5, 6];
        observed.durations[3] = (0..FEWEST as u64).collect();
        let charts = charts(&observed);
        let Content::Bars { names, groups } = &charts[0].content else { panic!("{charts:?}") };
        assert_eq!(names, &["median", "longest", "90 %"], "no name of a bar that is nowhere");
        let names: Vec<_> = groups.iter().map(|group| &*group.name).collect();
        assert_eq!(names, ["stopped (3 times)", "a collection (20 times)"]);
        let Content::Lines(lines) = &charts[1].content else { panic!("{charts:?}") };
        assert_eq!((lines.len(), &*lines[0].name), (1, "a collection (20 times)"));
        let expected = [
            "No bar of 90 % for fewer than 10 durations: stopped (3 times)",
            "No bar of 99 % for fewer than 100 durations: stopped (3 times), a collection (20 times)",
        ];
        assert_eq!(notes(&observed), expected);
    }
}
