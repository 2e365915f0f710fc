//! What a replay on a pool with caches needs, to size an Init by it.

use std::io;

use tripoint::{Arena as _, ArenaVm, ArenaVmOptions, CacheClasses, PoolClass as _, Tlsf, TlsfOptions};

use super::outline::Outline;
use super::pools::Cached;
use super::run::run_on;
use super::worker::{Measure, Order};

/// What is given to the arena and the pool at Init.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Init {
    pub(crate) commit_limit: usize,
    /// By how much the pool is extended, in bytes.
    pub(crate) extend: usize,
    pub(crate) classes: CacheClasses,
}

/// What a replay has done to the arena.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trial {
    /// Bytes that were committed during the replay.
    pub(crate) growth: u64,
    /// The most bytes that were committed up to its end.
    pub(crate) committed: usize,
    /// The most bytes that the pool had up to its end.
    pub(crate) high_water: usize,
    pub(crate) refused: u64,
}

/// Replays a trace this many times, one after the other, in one pool.
pub(crate) fn try_out(outline: &Outline, init: &Init, times: usize) -> io::Result<Vec<Trial>> {
    let options = ArenaVmOptions { commit_limit: init.commit_limit, ..ArenaVmOptions::default() };
    let arena = ArenaVm::create(options).map_err(io::Error::other)?;
    let pool = Tlsf::create(&arena, TlsfOptions::default()).map_err(io::Error::other)?;
    if init.extend != 0 {
        pool.extend(init.extend).map_err(io::Error::other)?;
    }
    let cached = Cached::new(&pool, init.classes);
    let mut trials = Vec::new();
    for _ in 0..times {
        let before = arena.counts().growth.get();
        let outcome = run_on(outline, &cached, &|| None, Measure::Time, Order::Strict)?;
        trials.push(Trial {
            growth: arena.counts().growth.get() - before,
            committed: arena.sizes().committed_high_water,
            high_water: pool.sizes().high_water,
            refused: outcome.refused,
        });
    }
    Ok(trials)
}
