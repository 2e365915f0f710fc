//! How fragmented free memory is.

use super::footprint::Sizes;
use super::names::PoolKey;
use super::observed::{Noted, Observed};
use crate::plotting::{Axis, Chart, Content, Series, Theme, Unit};

/// The class of pools of one size. Every free unit of theirs serves the next object, wherever it lies.
const FIXED: &str = "MFS";

pub(super) fn charts(observed: &Observed) -> Vec<Chart> {
    vec![scattered(observed), unused(observed)]
}

/// The part of each pool's free memory that is not in its largest block.
fn scattered(observed: &Observed) -> Chart {
    let share = |noted: &Noted| {
        let rest = noted.free.saturating_sub(noted.largest_free);
        if noted.free == 0 { 0.0 } else { rest as f64 / noted.free as f64 }
    };
    let is_shown = |pool: &PoolKey| !observed.names.class(*pool).eq_ignore_ascii_case(FIXED);
    let mut pools: Vec<_> = observed.noted.iter().filter(|(pool, _)| is_shown(pool)).collect();
    // Those that have most free memory.
    let most = |noted: &[Noted]| noted.iter().map(|noted| noted.free).max();
    pools.sort_by_key(|(_, noted)| core::cmp::Reverse(most(noted)));
    let series = pools.into_iter().zip(0..Theme::COLOURS).map(|((pool, noted), colour)| Series {
        name: observed.names.of(*pool),
        colour,
        points: noted.iter().map(|noted| (observed.since(noted.ns), share(noted))).collect(),
    });
    let if_empty = match observed.noted.keys().any(is_shown) {
        true => "in each pool, all that is free is in one block",
        false => "the program noted no sizes of pools of several sizes (ArenaHook::note_sizes)",
    };
    chart(
        observed,
        "Free memory outside a pool's largest free block (without pools of one size)",
        series.collect(),
        if_empty,
    )
}

/// The part of the committed memory that is not in use.
fn unused(observed: &Observed) -> Chart {
    let sizes = Sizes::of(observed);
    let used = sizes.used();
    let share = |index: usize| {
        let used = used[index] + sizes.unnoted[index] + sizes.unknown[index];
        let committed = sizes.committed[index];
        if committed > 0.0 { (1.0 - used / committed).clamp(0.0, 1.0) } else { 0.0 }
    };
    let moments = sizes.moments.iter().enumerate();
    let points: Vec<_> = moments.map(|(index, ns)| (observed.since(*ns), share(index))).collect();
    let if_empty = match points.is_empty() {
        true => "the recording has no sizes of arenas",
        false => "all of it is in use",
    };
    chart(
        observed,
        "Committed memory that is not in use (pools that noted no sizes, and what is not known, count as used)",
        vec![Series { name: "spare, or free in pools".to_owned(), colour: 0, points }],
        if_empty,
    )
}

/// A chart of shares. Nothing but zeros is not worth a chart.
fn chart(observed: &Observed, title: &str, mut series: Vec<Series>, if_empty: &str) -> Chart {
    if series.iter().flat_map(|series| &series.points).all(|(_, share)| *share == 0.0) {
        series.clear();
    }
    Chart {
        title: title.to_owned(),
        x: observed.time(),
        y: Axis::spanning("share", Unit::Share, (0.0, 1.0)),
        moments: observed.moments(),
        content: Content::Steps(series),
        if_empty: if_empty.to_owned(),
    }
}
