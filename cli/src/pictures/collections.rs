//! What collections of heaps kept and freed.

use super::observed::{Collected, Observed};
use crate::plotting::{Axis, Chart, Content, Series, Theme, Unit};
use crate::words::counted;

pub(super) fn charts(observed: &Observed) -> Vec<Chart> {
    let chart = |title: &str, bytes: fn(&Collected) -> u64| {
        let heaps = observed.collected.values().zip(0..Theme::COLOURS);
        let series = heaps.map(|(all, colour)| Series {
            name: format!("heap {}: {}", colour + 1, counted(all.len() as u64, "collection")),
            colour,
            points: all.iter().map(|one| (observed.since(one.ns), bytes(one) as f64)).collect(),
        });
        Chart {
            title: title.to_owned(),
            x: observed.time(),
            y: Axis::new("memory", Unit::Bytes),
            moments: observed.moments(),
            content: Content::Lines(series.collect()),
            if_empty: "the recording has no collections".to_owned(),
        }
    };
    vec![chart("Kept by each collection", |one| one.kept), chart("Freed by each collection", |one| one.freed)]
}
