//! How long stops, waits and collections took.

use super::observed::{DURATIONS, Observed};
use crate::plotting::{Axis, Chart, Content, Series, Unit};

pub(super) fn charts(observed: &Observed) -> Vec<Chart> {
    let kinds = DURATIONS.iter().zip(&observed.durations).filter(|(_, durations)| !durations.is_empty());
    let series = kinds.zip(0..).map(|(((name, ..), durations), colour)| Series {
        name: format!("{name} ({} times)", durations.len()),
        colour,
        points: distribution(durations),
    });
    vec![Chart {
        title: "Durations, the shortest first".to_owned(),
        x: Axis::spanning("share that took at most this long", Unit::Nines, (0.0, 1.0)),
        y: Axis::logarithmic("time", Unit::Nanoseconds),
        moments: Vec::new(),
        content: Content::Lines(series.collect()),
        if_empty: "the recording has no stops of heaps; tripoint replay has times of operations".to_owned(),
    }]
}

/// The durations by the share of all that is not longer, as nines. The longest of n is that of n in n + 1.
fn distribution(durations: &[u64]) -> Vec<(f64, f64)> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let all = sorted.len() as f64 + 1.0;
    let nines = |index: usize| -(1.0 - (index as f64 + 1.0) / all).log10();
    // A time that is below what the clock resolves has a place, too.
    sorted.iter().enumerate().map(|(index, ns)| (nines(index), (*ns).max(1) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_and_the_longest_have_their_places() {
        let points = distribution(&[5, 1, 9, 3, 7, 8, 2, 6, 4]);
        assert_eq!(points.len(), 9);
        assert!((points[8].0 - 1.0).abs() < 1e-9 && points[8].1 == 9.0, "{points:?}");
        assert!(points.is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1));
    }
}
