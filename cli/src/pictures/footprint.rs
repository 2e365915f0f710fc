//! Memory over time: what is in use, free in pools, and spare; and who has it.

use super::names::PoolKey;
use super::observed::Observed;
use super::track::{Track, join};
use crate::plotting::{Axis, Chart, Content, Layer, Theme, Unit};

pub(super) fn charts(observed: &Observed) -> Vec<Chart> {
    vec![whole(observed), by_pool(observed)]
}

/// All sizes of all arenas at all moments.
pub(super) struct Sizes {
    pub(super) moments: Vec<u64>,
    pub(super) committed: Vec<f64>,
    /// What pools have, of which the program noted how much is free.
    pub(super) noted: Vec<f64>,
    /// What other pools have.
    pub(super) unnoted: Vec<f64>,
    /// What is free in pools, of which that was noted.
    pub(super) free: Vec<f64>,
}

impl Sizes {
    pub(super) fn of(observed: &Observed) -> Self {
        let is_noted = |pool: &PoolKey| observed.free.contains_key(pool);
        let (noted, unnoted): (Vec<_>, Vec<_>) = observed.held.iter().partition(|(pool, _)| is_noted(pool));
        let tracks = |of: Vec<(&PoolKey, &Track)>| of.into_iter().map(|(_, track)| track.points()).collect();
        let kinds: [Vec<_>; 4] = [
            observed.committed.values().map(Track::points).collect(),
            tracks(noted),
            tracks(unnoted),
            observed.free.values().map(Track::points).collect(),
        ];
        let counts = kinds.each_ref().map(Vec::len);
        let (moments, joined) = join(&kinds.concat());
        let mut joined = joined.into_iter();
        let [committed, noted, unnoted, free] =
            counts.map(|count| sum(moments.len(), joined.by_ref().take(count)));
        // A pool may have returned memory since it was noted as free.
        let free = free.iter().zip(&noted).map(|(free, held)| free.min(*held)).collect();
        Self { moments, committed, noted, unnoted, free }
    }

    /// What is in objects and buffers, of all of which that is known.
    pub(super) fn used(&self) -> Vec<f64> {
        self.noted.iter().zip(&self.free).map(|(noted, free)| noted - free).collect()
    }
}

/// The sum of sizes at each moment.
fn sum(moments: usize, tracks: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    let mut sum = vec![0.0; moments];
    for track in tracks {
        sum.iter_mut().zip(track).for_each(|(sum, size)| *sum += size);
    }
    sum
}

fn whole(observed: &Observed) -> Chart {
    let sizes = Sizes::of(observed);
    let used = sizes.used();
    let Sizes { moments, committed, noted, unnoted, free } = sizes;
    let held = noted.iter().zip(&unnoted).map(|(noted, unnoted)| noted + unnoted);
    let spare = committed.iter().zip(held).map(|(committed, held)| (committed - held).max(0.0)).collect();
    let mut layers = vec![
        Layer { name: "in objects and buffers".to_owned(), values: used },
        Layer { name: "in pools that noted no sizes".to_owned(), values: unnoted },
        Layer { name: "free in pools".to_owned(), values: free },
        Layer { name: "spare, and the arena's own".to_owned(), values: spare },
    ];
    layers.retain(|layer| layer.values.iter().any(|value| *value > 0.0));
    let reserved: u64 = observed.reserved.values().sum();
    let title = match reserved {
        0 => "Committed memory".to_owned(),
        _ => format!("Committed memory, of {} of reserved addresses", Unit::Bytes.show(reserved as f64)),
    };
    chart(observed, title, moments, layers)
}

/// The bytes that pools have: those that ever had most, and the others together.
fn by_pool(observed: &Observed) -> Chart {
    let tracks: Vec<_> = observed.held.values().map(Track::points).collect();
    let (moments, joined) = join(&tracks);
    let keys = observed.held.keys().copied();
    let mut pools: Vec<(PoolKey, Vec<f64>)> = keys.zip(joined).collect();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    pools.retain(|(_, values)| most(values) > 0.0);
    pools.sort_by(|one, other| most(&other.1).total_cmp(&most(&one.1)));
    let rest = pools.split_off(pools.len().min(Theme::COLOURS - 1));
    let mut layers: Vec<_> =
        pools.into_iter().map(|(pool, values)| Layer { name: observed.names.of(pool), values }).collect();
    if !rest.is_empty() {
        let name = format!("{} other pools", rest.len());
        let values = sum(moments.len(), rest.into_iter().map(|(_, values)| values));
        layers.push(Layer { name, values });
    }
    chart(observed, "Memory of each pool".to_owned(), moments, layers)
}

fn chart(observed: &Observed, title: String, moments: Vec<u64>, layers: Vec<Layer>) -> Chart {
    Chart {
        title,
        x: observed.time(),
        y: Axis::new("memory", Unit::Bytes),
        moments: observed.moments(),
        content: Content::Areas { at: moments.into_iter().map(|ns| observed.since(ns)).collect(), layers },
        if_empty: "the recording has no sizes of arenas and pools".to_owned(),
    }
}
