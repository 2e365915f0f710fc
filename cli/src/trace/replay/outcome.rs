//! What a run found.

use serde::{Deserialize, Serialize};

/// The footprint after an operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Operations that were done before.
    pub(crate) operations: u64,
    /// Bytes that were live, as they were asked for.
    pub(crate) live: u64,
    /// Resident bytes, less those before the run.
    pub(crate) resident: i64,
    /// Bytes that the arena had committed since it was created, for pools.
    pub(crate) committed: Option<u64>,
}

/// What a run found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Bytes that were not as they were stamped, zeros that were none, and wrong alignments; each counted once an operation.
    pub(crate) differences: u64,
    pub(crate) first_difference: Option<String>,
    /// Allocations and resizes that were refused.
    pub(crate) refused: u64,
    /// Nanoseconds an operation.
    pub(crate) mean: Option<f64>,
    /// The same of a second replay in the same process, which finds the memory of the first.
    pub(crate) warm: Option<f64>,
    /// How often threads had to make way for others while the time was measured, though they had more to do; zero if the
    /// system does not say.
    pub(crate) interruptions: u64,
    /// Nanoseconds of the 50th, 90th, 99th, 99.9th and 99.99th percentile, and the longest.
    pub(crate) percentiles: Option<[u64; 6]>,
    /// Resident bytes, less those before the run, when the most were live, and at the end.
    pub(crate) at_peak: Option<i64>,
    pub(crate) at_end: Option<i64>,
    pub(crate) faults: Option<u64>,
    /// Bytes that the arena committed, for pools.
    pub(crate) growth: Option<u64>,
    /// Allocations that no cache of a thread could serve by itself, for pools with caches.
    pub(crate) fills: Option<u64>,
    /// The footprint in the course of the replay.
    pub(crate) samples: Vec<Sample>,
}

impl Outcome {
    /// Whether anything is not as it should be.
    pub(crate) fn is_wrong(&self) -> bool {
        self.differences != 0 || self.refused != 0
    }

    /// The mean of resident bytes in the course of the replay over that of live bytes.
    pub(crate) fn mean_share(&self) -> Option<f64> {
        let live: f64 = self.samples.iter().map(|sample| sample.live as f64).sum();
        let resident: f64 = self.samples.iter().map(|sample| sample.resident.max(0) as f64).sum();
        (live > 0.0).then(|| resident / live)
    }
}
