//! Options for registering a hot thread.

use crate::detectors::platform;
use crate::phases::policy::{Policies, Policy};
use crate::words::class::ViolationSet;
use crate::words::detector_set::DetectorSet;

/// Options for registering a hot thread.
#[derive(Clone, Copy, Debug)]
pub struct HotThread<'name> {
    /// The name in reports; the first 32 bytes are kept.
    pub name: &'name str,
    /// The number of the core to bind the thread to; by default the thread is not bound.
    pub core: Option<usize>,
    /// The classes that the thread is held to; by default [`ViolationSet::STEADY`]. Events of
    /// other classes are only counted.
    pub classes: ViolationSet,
    /// The detectors that are wanted; by default [`DetectorSet::DEFAULT`]. The report names
    /// those that are wanted and not live as missing, and the others as not asked for.
    pub detectors: DetectorSet,
    /// What alarms do; by default [`Policy::AlarmOnce`] for all classes.
    pub policies: Policies,
    /// The clock of the thread's records, in ns; by default that of the system,
    /// since the Unix epoch.
    pub clock: fn() -> u64,
}

impl<'name> HotThread<'name> {
    /// A hot thread with defaults.
    #[must_use]
    pub const fn new(name: &'name str) -> Self {
        Self {
            name,
            core: None,
            classes: ViolationSet::STEADY,
            detectors: DetectorSet::DEFAULT,
            policies: Policies::all(Policy::AlarmOnce),
            clock: platform::clock,
        }
    }
}
