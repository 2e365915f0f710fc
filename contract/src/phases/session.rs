//! What all threads of a contract share.

use tripoint_core::internal::AtomicUsize;

#[cfg(tripoint_kernel)]
use crate::detectors::platform;
use crate::phases::ledger::Ledger;
use crate::thread::observer::Observer;
use crate::thread::tally::TallyPlace;
use crate::words::atomics::const_fn;
use crate::words::lifecycle::Lifecycle;

/// What all threads of a contract share.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) ledger: Ledger,
    pub(crate) observer: Observer,
    /// Where the tallies of all threads are, if not in their slots.
    pub(crate) tally_place: TallyPlace,
    /// The number of the last poll that was asked for.
    pub(crate) polls: AtomicUsize,
    /// The [`MemorySteps`] that failed.
    pub(crate) memory_missed: AtomicUsize,
    /// The number of rehearsals.
    pub(crate) rounds: AtomicUsize,
    /// What Init found of the system's settings.
    #[cfg(tripoint_kernel)]
    pub(crate) runtime: platform::Runtime,
}

impl Session {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                lifecycle: Lifecycle::new(),
                ledger: Ledger::new(),
                observer: Observer::new(),
                tally_place: TallyPlace::new(),
                polls: AtomicUsize::new(0),
                memory_missed: AtomicUsize::new(0),
                rounds: AtomicUsize::new(0),
                #[cfg(tripoint_kernel)]
                runtime: platform::Runtime::new(),
            }
        }
    }
}
