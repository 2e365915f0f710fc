//! Memory over time: what is in use, free in pools, spare, and not known; and who has it.

use std::collections::BTreeMap;

use super::names::PoolKey;
use super::observed::Observed;
use super::track::{Known, join};
use crate::plotting::{Axis, Chart, Content, Layer, Theme, Unit};

/// What is not known, because events were overwritten before they were read.
const UNKNOWN: &str = "not known";

pub(super) fn charts(observed: &Observed) -> Vec<Chart> {
    let sizes = Sizes::of(observed);
    vec![whole(observed, &sizes), by_pool(observed, sizes)]
}

/// All sizes of all arenas at all moments.
#[derive(Default)]
pub(super) struct Sizes {
    pub(super) moments: Vec<u64>,
    /// What arenas have committed at least.
    pub(super) committed: Vec<f64>,
    /// What pools have, of which the program has noted how much is free.
    pub(super) noted: Vec<f64>,
    /// What other pools have.
    pub(super) unnoted: Vec<f64>,
    /// What is free in pools, of which that was noted.
    pub(super) free: Vec<f64>,
    /// What no pool has.
    spare: Vec<f64>,
    /// What may be in pools, or spare, or not committed.
    pub(super) unknown: Vec<f64>,
    /// What each pool has at least.
    pools: BTreeMap<PoolKey, Vec<f64>>,
}

/// A size at all moments.
struct Joined {
    size: Vec<f64>,
    unknown: Vec<f64>,
    /// Whether anything is known of it yet.
    has_begun: Vec<bool>,
}

impl Sizes {
    pub(super) fn of(observed: &Observed) -> Self {
        let courses = |track| observed.course(track);
        let counts = [observed.committed.len(), observed.held.len(), observed.free.len()];
        let tracks = observed.committed.values().chain(observed.held.values()).chain(observed.free.values());
        let (moments, joined) = join_courses(&tracks.map(courses).collect::<Vec<_>>());
        let mut joined = joined.into_iter();
        let [committed, held, free] = counts.map(|count| joined.by_ref().take(count).collect::<Vec<_>>());
        let free: BTreeMap<_, _> = observed.free.keys().zip(free).collect();
        let none = || vec![0.0; moments.len()];
        let mut sizes = Self {
            committed: none(),
            noted: none(),
            unnoted: none(),
            free: none(),
            spare: none(),
            unknown: none(),
            ..Self::default()
        };
        // Of each arena, what its pools have, and what they may have more.
        let mut of_pools = BTreeMap::<u64, (Vec<f64>, Vec<f64>)>::new();
        for (key, held) in observed.held.keys().zip(held) {
            let (has, may_have) = of_pools.entry(key.arena).or_insert_with(|| (none(), none()));
            for (at, size) in held.size.iter().enumerate() {
                has[at] += size;
                may_have[at] += held.unknown[at];
                match free.get(key).filter(|free| free.has_begun[at]) {
                    Some(free) => {
                        sizes.noted[at] += size;
                        // It may have returned memory since that was noted.
                        sizes.free[at] += free.size[at].min(*size);
                    }
                    None => sizes.unnoted[at] += size,
                }
            }
            sizes.pools.insert(*key, held.size);
        }
        for (arena, committed) in observed.committed.keys().zip(committed) {
            let (has, may_have) = of_pools.remove(arena).unwrap_or_else(|| (none(), none()));
            for (at, size) in committed.size.iter().enumerate() {
                sizes.committed[at] += size;
                let rest = (size - has[at]).max(0.0);
                let doubtful = if observed.has_unknown_pools { rest } else { rest.min(may_have[at]) };
                sizes.spare[at] += rest - doubtful;
                sizes.unknown[at] += doubtful + committed.unknown[at];
            }
        }
        // What is not known of arenas themselves.
        for (_, may_have) in of_pools.into_values() {
            sizes.unknown.iter_mut().zip(may_have).for_each(|(sum, unknown)| *sum += unknown);
        }
        Self { moments, ..sizes }
    }

    /// What is in objects and buffers, of all of which that is known.
    pub(super) fn used(&self) -> Vec<f64> {
        self.noted.iter().zip(&self.free).map(|(noted, free)| noted - free).collect()
    }
}

/// Courses at the moments of all of them.
fn join_courses(courses: &[Vec<Known>]) -> (Vec<u64>, Vec<Joined>) {
    let part = |of: fn(&Known) -> f64| {
        let part = |course: &Vec<Known>| course.iter().map(|known| (known.ns, of(known))).collect();
        courses.iter().map(part).collect::<Vec<_>>()
    };
    let (moments, sizes) = join(&part(|known| known.size));
    let (_, unknown) = join(&part(|known| known.unknown));
    let joined = sizes.into_iter().zip(unknown).zip(courses).map(|((size, unknown), course)| {
        let first = course.first().map_or(u64::MAX, |known| known.ns);
        Joined { size, unknown, has_begun: moments.iter().map(|ns| *ns >= first).collect() }
    });
    let joined = joined.collect();
    (moments, joined)
}

fn whole(observed: &Observed, sizes: &Sizes) -> Chart {
    let layer = |name: &str, values: &[f64]| Layer { name: name.to_owned(), values: values.to_vec() };
    let mut layers = vec![
        layer("in objects and buffers", &sizes.used()),
        layer("in pools that noted no sizes", &sizes.unnoted),
        layer("free in pools", &sizes.free),
        layer("spare, and the arena's own", &sizes.spare),
        layer(UNKNOWN, &sizes.unknown),
    ];
    layers.retain(is_shown);
    let reserved: u64 = observed.reserved.values().sum();
    let title = match reserved {
        0 => "Committed memory".to_owned(),
        _ => format!("Committed memory, of {} of reserved addresses", Unit::Bytes.show(reserved as f64)),
    };
    chart(observed, title, &sizes.moments, layers)
}

fn is_shown(layer: &Layer) -> bool {
    layer.values.iter().any(|value| *value > 0.0)
}

/// The bytes that pools have: those that ever had most, and the others together; and what is not known of them.
fn by_pool(observed: &Observed, sizes: Sizes) -> Chart {
    let mut pools: Vec<(PoolKey, Vec<f64>)> = sizes.pools.into_iter().collect();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    pools.retain(|(_, values)| most(values) > 0.0);
    pools.sort_by(|one, other| most(&other.1).total_cmp(&most(&one.1)));
    // Two colours are left for the others, and for what is not known.
    let rest = pools.split_off(pools.len().min(Theme::COLOURS - 2));
    let mut layers: Vec<_> =
        pools.into_iter().map(|(pool, values)| Layer { name: observed.names.of(pool), values }).collect();
    if !rest.is_empty() {
        let mut values = vec![0.0; sizes.moments.len()];
        for (_, more) in &rest {
            values.iter_mut().zip(more).for_each(|(sum, size)| *sum += size);
        }
        layers.push(Layer { name: format!("{} other pools", rest.len()), values });
    }
    layers.push(Layer { name: UNKNOWN.to_owned(), values: sizes.unknown });
    layers.retain(is_shown);
    chart(observed, "Memory of each pool".to_owned(), &sizes.moments, layers)
}

fn chart(observed: &Observed, title: String, moments: &[u64], layers: Vec<Layer>) -> Chart {
    Chart {
        title,
        x: observed.time(),
        y: Axis::new("memory", Unit::Bytes),
        moments: observed.moments(),
        content: Content::Areas { at: moments.iter().map(|ns| observed.since(*ns)).collect(), layers },
        if_empty: "the recording has no sizes of arenas and pools".to_owned(),
    }
}
