//! The detectors that are live for every thread of the process.

use crate::words::detector_set::DetectorSet;

#[cfg(feature = "std")]
use tripoint_core::internal::{AtomicUsize, Ordering};

/// A [`DetectorSet`].
#[cfg(feature = "std")]
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The detectors that are live for every thread of the process.
#[cfg(feature = "std")]
pub(crate) fn live() -> DetectorSet {
    DetectorSet::from_bits_truncate(LIVE.load(Ordering::Relaxed))
}

/// The detectors that are live for every thread of the process: none that this crate has.
#[cfg(not(feature = "std"))]
pub(crate) const fn live() -> DetectorSet {
    DetectorSet::empty()
}

/// Notes that these detectors are live for every thread. Costs one load after the first time.
#[cfg(feature = "std")]
pub(crate) fn add(detectors: DetectorSet) {
    if !live().contains(detectors) {
        LIVE.fetch_or(detectors.bits(), Ordering::Relaxed);
    }
}
