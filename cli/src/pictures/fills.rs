//! Fills and empties of allocation points, by thread.

use super::observed::{Filled, Observed};
use crate::plotting::{Axis, Chart, Content, Group, Series, Theme, Unit};
use crate::summary::Summary;

/// The most threads that have bars of their own.
const THREADS: usize = 16;

pub(super) fn charts(observed: &Observed, summary: &Summary) -> Vec<Chart> {
    let mut threads: Vec<_> =
        observed.filled.iter().map(|(thread, filled)| (summary.thread_name(*thread), filled)).collect();
    threads.sort_by_key(|(_, filled)| core::cmp::Reverse(filled.fills.len() as u64 + filled.empties));
    let if_empty = "the recording has no fills".to_owned();
    let counts = Chart {
        title: "By thread".to_owned(),
        x: Axis::new("events", Unit::Count),
        y: Axis::new("thread", Unit::Names),
        moments: Vec::new(),
        content: Content::Bars {
            names: ["fills", "empties"].map(str::to_owned).to_vec(),
            groups: groups(&threads),
        },
        if_empty: if_empty.clone(),
    };
    let series = threads.iter().zip(0..Theme::COLOURS).map(|((name, filled), colour)| Series {
        name: name.clone(),
        colour,
        points: (1..).zip(&filled.fills).map(|(count, ns)| (observed.since(*ns), f64::from(count))).collect(),
    });
    let over_time = Chart {
        title: "Fills up to each moment".to_owned(),
        x: observed.time(),
        y: Axis::new("fills", Unit::Count),
        moments: observed.moments(),
        content: Content::Steps(series.collect()),
        if_empty,
    };
    vec![counts, over_time]
}

fn groups(threads: &[(String, &Filled)]) -> Vec<Group> {
    let values = |filled: &Filled| vec![filled.fills.len() as f64, filled.empties as f64];
    let group = |(name, filled): &(String, &Filled)| Group { name: name.clone(), values: values(filled) };
    let (shown, rest) = threads.split_at(threads.len().min(THREADS));
    let mut groups: Vec<_> = shown.iter().map(group).collect();
    if !rest.is_empty() {
        let sum = |index: usize| rest.iter().map(|(_, filled)| values(filled)[index]).sum();
        groups.push(Group { name: format!("{} others", rest.len()), values: vec![sum(0), sum(1)] });
    }
    groups
}
