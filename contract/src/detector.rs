//! Which detectors there are, and what a guard asks of them.

use bitflags::bitflags;
use tripoint_core::{Error, Result};

use crate::slot::Slot;

bitflags! {
    /// A set of detectors. A detector is **live** for a thread where it has
    /// proved, on that thread, that it sees what it is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DetectorSet: usize {
        /// The wrapped global allocator: alloc, realloc, dealloc.
        const ALLOCATOR = 1 << 0;
        /// Events of arenas and buffers: fill, growth. Live once an arena has reported any
        /// event to [`PoolEvents`](crate::PoolEvents), on any thread: the arenas of Init do.
        const POOL_EVENTS = 1 << 1;
        /// Page faults by synchronous signal: exact address and instruction.
        const FAULT_TRAP = 1 << 2;
        /// Page faults by asking the kernel for the thread's count: no site.
        const FAULT_POLL = 1 << 3;
        /// Memory system calls, by a filter and its supervisor.
        const MEMORY_CALLS = 1 << 4;
        /// C's `malloc`, by interposition.
        const FOREIGN_MALLOC = 1 << 5;
    }
}

impl DetectorSet {
    /// The detectors that are asked for by default: those that every program can use and
    /// that this build can prove. Pool events are not among them: a program without pools
    /// has none, and in a program with pools they are live unasked. Nor is C's `malloc`
    /// without the feature `interpose-malloc`.
    pub const DEFAULT: Self = {
        let always =
            Self::ALLOCATOR.union(Self::FAULT_TRAP).union(Self::FAULT_POLL).union(Self::MEMORY_CALLS);
        if cfg!(feature = "interpose-malloc") { always.union(Self::FOREIGN_MALLOC) } else { always }
    };

    const NAMES: [(Self, &'static str); 6] = [
        (Self::ALLOCATOR, "allocator"),
        (Self::POOL_EVENTS, "pool_events"),
        (Self::FAULT_TRAP, "fault_trap"),
        (Self::FAULT_POLL, "fault_poll"),
        (Self::MEMORY_CALLS, "memory_calls"),
        (Self::FOREIGN_MALLOC, "foreign_malloc"),
    ];

    /// The names of the detectors in the set, as in reports.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(detector, _)| self.contains(*detector)).map(|(_, name)| name)
    }
}

/// The detectors of one thread that need an operating system. Its guard owns
/// them; all methods are called on that thread.
pub trait Detectors {
    /// Binds the thread to a core.
    ///
    /// # Errors
    /// [`Error::Resource`] where the system cannot.
    fn pin(&mut self, core: usize) -> Result<()> {
        let _ = core;
        Err(Error::Resource)
    }

    /// Starts those that cost the warm-up something. Called once, before the
    /// first rehearsal or arming, and before its baseline. Gives all that are live
    /// from now on.
    fn start(&mut self, slot: &'static Slot) -> DetectorSet;

    /// Charges the thread with what it must be asked for.
    fn poll(&mut self, slot: &'static Slot);
}

/// No such detectors: for targets without an operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDetectors;

impl Detectors for NoDetectors {
    fn start(&mut self, _slot: &'static Slot) -> DetectorSet {
        DetectorSet::empty()
    }

    fn poll(&mut self, _slot: &'static Slot) {}
}
