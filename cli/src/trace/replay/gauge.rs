//! What a replay takes while it goes on: its footprint and its time.

use core::time::Duration;

use super::footprint;
use super::outcome::{Outcome, Sample};
use super::window::Windows;

/// How often the footprint is read, about.
pub(super) const SAMPLES: u64 = 200;

/// What was measured up to now.
pub(super) struct Gauge<'a> {
    /// What an arena has committed, if the footprint is read at all.
    growth: Option<&'a dyn Fn() -> Option<u64>>,
    resident: Option<u64>,
    faults: Option<u64>,
    /// The time of all windows.
    pub(super) wall: Duration,
    at_peak: Option<i64>,
    samples: Vec<Sample>,
}

impl<'a> Gauge<'a> {
    /// Before the first operation.
    pub(super) fn begin(growth: Option<&'a dyn Fn() -> Option<u64>>) -> Self {
        // Twice as many as there should be, so that none of them takes memory later. Those are of the peak.
        let samples = Vec::with_capacity(2 * SAMPLES as usize);
        // Once before it counts: the first reading allocates what later ones use.
        let _ = (footprint::resident(), footprint::minor_faults());
        let (resident, faults) = (footprint::resident(), footprint::minor_faults());
        Self { growth, resident, faults, wall: Duration::ZERO, at_peak: None, samples }
    }

    /// Resident bytes, less those before.
    fn resident(&self) -> Option<i64> {
        Some(footprint::resident()?.cast_signed() - self.resident?.cast_signed())
    }

    /// Reads the footprint at the end of a window.
    pub(super) fn sample(&mut self, windows: &Windows<'_>) {
        let Some((growth, resident)) = self.growth.zip(self.resident()) else { return };
        let (operations, live) = (windows.operations, windows.live_bytes());
        self.samples.push(Sample { operations, live, resident, committed: growth() });
        if windows.is_at_peak() {
            self.at_peak = Some(resident);
        }
    }

    /// After the last operation.
    pub(super) fn end(&mut self) -> Outcome {
        let checks = self.growth.is_some();
        let faults = footprint::minor_faults().zip(self.faults).map(|(after, before)| after - before);
        Outcome {
            at_peak: self.at_peak,
            at_end: self.resident().filter(|_| checks),
            faults: faults.filter(|_| checks),
            samples: core::mem::take(&mut self.samples),
            ..Outcome::default()
        }
    }
}
