//! What is known of every thread of the process: the detectors that are live for all, and what threads do that are not
//! registered.

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

/// How many collections there were on threads that are not registered.
#[cfg(feature = "std")]
static COLLECTIONS: AtomicUsize = AtomicUsize::new(0);

/// Counts a collection on a thread that is not registered.
#[cfg(feature = "std")]
pub(crate) fn count_collection() {
    COLLECTIONS.fetch_add(1, Ordering::Relaxed);
}

/// How many collections there were on threads that are not registered, since the process began.
#[cfg(tripoint_kernel)]
pub(crate) fn collections() -> usize {
    COLLECTIONS.load(Ordering::Relaxed)
}
