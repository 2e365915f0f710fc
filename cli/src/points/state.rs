//! What there is at the end of a replay.

use std::io::Write as _;

use serde::Serialize;
use tripoint::packets::PacketCounts;
use tripoint::points::Snapshot;
use tripoint::{Addr, PoolSizes};

use crate::error::Error;
use crate::output::Output;

/// The pools and points that are there. Addresses count from the arena's base.
#[derive(Debug, Default, Serialize)]
pub(crate) struct State {
    pub(super) pools: Vec<PoolState>,
}

#[derive(Debug, Serialize)]
pub(super) struct PoolState {
    pub(super) pool: u64,
    pub(super) class: &'static str,
    /// None for a pool of a heap: the log does not say how large it is.
    #[serde(flatten)]
    sizes: Option<Sizes>,
    /// Only of a pool of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<Units>,
    pub(super) points: Vec<PointState>,
}

#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    total: usize,
    free: usize,
    largest_free: usize,
    high_water: usize,
}

/// Where the units of a pool of packets are.
#[derive(Debug, Serialize)]
struct Units {
    depot: usize,
    caches: usize,
    rings: usize,
    program: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct PointState {
    /// Its buffer.
    buffer: usize,
    /// None if the point has no memory.
    words: Option<Words>,
    filled: u64,
    emptied: u64,
}

/// The words of a buffer.
#[derive(Debug, Serialize)]
struct Words {
    base: usize,
    init: usize,
    alloc: usize,
    limit: usize,
}

impl From<PoolSizes> for Sizes {
    fn from(sizes: PoolSizes) -> Self {
        let PoolSizes { total, free, largest_free, high_water } = sizes;
        Self { total, free, largest_free, high_water }
    }
}

impl PoolState {
    pub(super) fn new(
        pool: u64,
        class: &'static str,
        sizes: Option<PoolSizes>,
        packets: Option<PacketCounts>,
    ) -> Self {
        let units = packets.map(|counts| {
            let PacketCounts { depot, caches, rings, .. } = counts;
            Units { depot, caches, rings, program: counts.boxed() }
        });
        Self { pool, class, sizes: sizes.map(Sizes::from), units, points: Vec::new() }
    }
}

impl PointState {
    /// A point of an arena with this base. The limit is where the pool's memory ends: while all calls are logged, the
    /// limit that the point sees is at `init`.
    pub(super) fn new(base: Addr, buffer: Addr, now: Option<Snapshot>, filled: u64, emptied: u64) -> Self {
        let at = |addr: Addr| addr.get().wrapping_sub(base.get());
        let words = now.filter(|now| now.base != Addr::ZERO).map(|now| Words {
            base: at(now.base),
            init: at(now.init),
            alloc: at(now.alloc),
            limit: at(now.pool_limit),
        });
        Self { buffer: at(buffer), words, filled, emptied }
    }
}

impl State {
    pub(super) fn write(&self, out: &mut Output) -> Result<(), Error> {
        for PoolState { pool, class, sizes, units, points } in &self.pools {
            write!(out, "pool {pool} {class}")?;
            if let Some(Sizes { total, free, largest_free, high_water }) = sizes {
                write!(
                    out,
                    ": {total} B, {free} B free, {largest_free} B in one piece, at most {high_water} B"
                )?;
            }
            writeln!(out)?;
            if let Some(Units { depot, caches, rings, program }) = units {
                writeln!(
                    out,
                    "  units: {depot} in the depot, {caches} in caches, {rings} with rings, {program} the program's"
                )?;
            }
            for PointState { buffer, words, filled, emptied } in points {
                write!(out, "  point +{buffer:#x}: ")?;
                match words {
                    Some(Words { base, init, alloc, limit }) => {
                        write!(
                            out,
                            "base +{base:#x}, init +{init:#x}, alloc +{alloc:#x}, limit +{limit:#x}"
                        )?;
                    }
                    None => write!(out, "no memory")?,
                }
                writeln!(out, "; filled {filled} B, emptied {emptied} B")?;
            }
        }
        Ok(())
    }
}
