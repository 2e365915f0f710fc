//! Sizes for an Init, from a trace ([design/cli-traces.md `.advise`](crate::design::cli_traces)).
//!
//! ```text
//! marks.rs     from the high-water marks of telemetry
//! ```

mod marks;

use std::io;

use indicatif::ProgressBar;
use serde::Serialize;
use tripoint::CacheClasses;
use tripoint::author::CacheClass;

pub(crate) use self::marks::{Mark, Marks, marks};
use crate::trace::replay::{Init, Outline, try_out};

/// The largest block that caches are advised for, in bytes.
const CACHED: usize = 4096;
/// How many blocks of a class a cache is advised to keep, at least and at most.
const KEPT: core::ops::RangeInclusive<usize> = 8..=1024;
/// A size is worth a pool of its own if this many of 100 allocations are of it, and this many objects are live at once.
const WORTH: (u64, u64) = (5, 64);
/// The largest unit that is worth a pool of its own, in bytes.
const LARGEST_UNIT: usize = 1024;

/// What to give to an Init.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Advice {
    /// `ArenaVmOptions::commit_limit`, in bytes. This is the expected footprint.
    pub(crate) commit_limit: usize,
    /// By how much to extend a `Tlsf` at Init, in bytes.
    pub(crate) extend: usize,
    /// The size and count of each `CacheClass`, for the cache of each thread.
    pub(crate) classes: Vec<Class>,
    /// Sizes that are worth an `Mfs` pool.
    pub(crate) units: Vec<Unit>,
    /// Bytes that two replays committed with this Init, one after the other.
    pub(crate) growth: [u64; 2],
    /// Requests that they refused.
    pub(crate) refused: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Class {
    pub(crate) size: usize,
    pub(crate) count: usize,
    /// The most objects that are live at once, and the bytes of as many blocks.
    pub(crate) most: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Unit {
    pub(crate) size: usize,
    pub(crate) allocations: u64,
    /// The most that are live at once.
    pub(crate) most: u64,
}

/// Advises on a trace, by its outline: measures what it needs, and replays it twice with that.
pub(crate) fn advise(outline: &Outline, bar: &ProgressBar) -> io::Result<Advice> {
    bar.reset();
    bar.set_length(5);
    let next = |doing: &'static str| {
        bar.inc(1);
        bar.set_message(doing);
    };
    bar.set_message("counting objects of each size");
    let classes = classes(outline)?;
    next("replaying without limits");
    let free = Init { commit_limit: usize::MAX, extend: 0, classes };
    let extend = try_out(outline, &free, 1)?.iter().map(|trial| trial.high_water).max().unwrap_or(0);
    // What the arena itself takes depends on how the pool is extended.
    let extended = Init { extend, ..free };
    next("replaying twice after an extension");
    let commit_limit = try_out(outline, &extended, 2)?.iter().map(|trial| trial.committed).max().unwrap_or(0);
    next("replaying twice with the limit");
    let trials = try_out(outline, &Init { commit_limit, ..extended }, 2)?;
    next("counting objects of each size");
    let growth = core::array::from_fn(|index| trials.get(index).map_or(0, |trial| trial.growth));
    let refused = trials.iter().map(|trial| trial.refused).sum();
    let demand = outline.demand(|size| block_of(&classes, size))?;
    let class = |&CacheClass { size, count }: &CacheClass| {
        let most = demand.get(&size).map_or(0, |demand| demand.most);
        Class { size, count, most, bytes: size as u64 * most }
    };
    let classes = classes.as_slice().iter().map(class).collect();
    Ok(Advice { commit_limit, extend, classes, units: units(outline)?, growth, refused })
}

/// A class for each size that occurs, with room for about four times the root of its objects: that keeps a
/// cache away from both its ends (design/cache.md).
fn classes(outline: &Outline) -> io::Result<CacheClasses> {
    let all = CacheClasses::geometric(CACHED, 1).map_err(io::Error::other)?;
    let demand = outline.demand(|size| block_of(&all, size))?;
    let count = |most: u64| ((4.0 * (most as f64).sqrt()) as usize).clamp(*KEPT.start(), *KEPT.end());
    let classes: Vec<_> =
        demand.iter().map(|(&size, of)| CacheClass { size, count: count(of.most) }).collect();
    // Nothing to keep: the smallest class, which stays empty.
    if classes.is_empty() {
        CacheClasses::geometric(CacheClass::ALIGN, 1)
    } else {
        CacheClasses::new(&classes)
    }
    .map_err(io::Error::other)
}

/// The size of the class that an object of this size is in; none if it is too large for all of them.
fn block_of(classes: &CacheClasses, size: usize) -> Option<usize> {
    classes.as_slice().iter().map(|class| class.size).find(|&class| class >= size)
}

/// The sizes that are worth a pool of their own, the most frequent first.
fn units(outline: &Outline) -> io::Result<Vec<Unit>> {
    let unit =
        |size: usize| Some(size.next_multiple_of(CacheClass::ALIGN)).filter(|&size| size <= LARGEST_UNIT);
    let demand = outline.demand(unit)?;
    let (share, least) = WORTH;
    let all = outline.operations;
    let worth = demand.iter().filter(|(_, of)| of.allocations * 2 * 100 >= share * all && of.most >= least);
    let mut units: Vec<_> =
        worth.map(|(&size, of)| Unit { size, allocations: of.allocations, most: of.most }).collect();
    units.sort_by_key(|unit| core::cmp::Reverse(unit.allocations));
    Ok(units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::synthesize::tests::trace;

    /// A trace that these options make; the file is there as long as the first value.
    fn outlined(options: &str, seed: u64) -> (tempfile::NamedTempFile, Outline) {
        let file = trace(options, seed);
        let outline = Outline::read(file.path(), u64::MAX, &ProgressBar::hidden()).unwrap();
        (file, outline)
    }

    /// (design/cli-traces.md `.req.advice`)
    #[test]
    fn advice_applied_does_not_grow_after_the_warm_up() {
        for options in [
            "--objects 20000 --lifetime 2000",
            "--objects 20000 --lifetime 500 --threads 4 --turn 7 --foreign 50 --largest 30000 --reallocs 30",
        ] {
            let (_file, outline) = outlined(options, 21);
            let advice = advise(&outline, &ProgressBar::hidden()).unwrap();
            assert_eq!((advice.growth[1], advice.refused), (0, 0), "{options}: {advice:?}");
            // The control: half of it is refused or grows.
            let classes = classes(&outline).unwrap();
            let init = Init { commit_limit: advice.commit_limit / 2, extend: 0, classes };
            let trials = try_out(&outline, &init, 1).unwrap();
            assert!(trials[0].refused > 0, "{options}: {trials:?}");
        }
    }

    #[test]
    fn a_size_that_most_objects_have_is_worth_a_pool() {
        let (_file, outline) = outlined("--objects 5000 --smallest 40 --largest 40 --reallocs 0", 22);
        let advice = advise(&outline, &ProgressBar::hidden()).unwrap();
        assert_eq!(advice.units.len(), 1, "{advice:?}");
        assert_eq!((advice.units[0].size, advice.units[0].allocations), (48, 5000));
        assert_eq!(advice.classes.len(), 1);
        let (_file, spread) = outlined("--objects 5000 --smallest 2000 --largest 90000", 23);
        assert!(units(&spread).unwrap().is_empty());
    }

    #[test]
    fn an_empty_trace_has_advice() {
        let (_file, outline) = outlined("--objects 0", 24);
        assert_eq!(advise(&outline, &ProgressBar::hidden()).unwrap().refused, 0);
    }
}
