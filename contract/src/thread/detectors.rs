//! What a guard asks of a thread's detectors.

use tripoint_core::{Error, Result};

use crate::thread::slot::Slot;
use crate::words::detector_set::DetectorSet;

/// The detectors of one thread that need an operating system. The thread's guard owns
/// them, and calls all methods on that thread.
pub trait Detectors {
    /// Binds the thread to a core.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the system does not bind the thread to that core.
    fn pin(&mut self, core: usize) -> Result<()> {
        let _ = core;
        Err(Error::Parameter("these detectors cannot bind a thread to a core: leave HotThread::core unset"))
    }

    /// Starts the detectors that would make the warm-up slower. Called once, before the
    /// first rehearsal or arming, and before its baseline. Returns all that are live
    /// from now on.
    fn start(&mut self, slot: &'static Slot) -> DetectorSet;

    /// Charges the thread with the events that the system only counts.
    fn poll(&mut self, slot: &'static Slot);
}

/// No detectors: for targets without an operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDetectors;

impl Detectors for NoDetectors {
    fn start(&mut self, _slot: &'static Slot) -> DetectorSet {
        DetectorSet::empty()
    }

    fn poll(&mut self, _slot: &'static Slot) {}
}
