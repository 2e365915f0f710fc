//! Which detectors there are.

use bitflags::bitflags;

use crate::words::class::ViolationClass;

bitflags! {
    /// A set of detectors. A detector is **live** for a thread once it has seen, on that thread,
    /// a deliberate event of its kind.
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
        /// Waits in the kernel: locks that are held, sleeps, `poll` and their like, by the same
        /// filter and supervisor as memory calls ([design/contract.md
        /// `.call.waits`](crate::design::contract)).
        const WAITS = 1 << 6;
    }
}

impl DetectorSet {
    /// The detectors that are asked for by default: those that every program can use and
    /// that this build can prove. Pool events are not among them: a program without pools
    /// has none, and in a program with pools they are live unasked. Nor is C's `malloc`
    /// without the feature `interpose-malloc`. Nor are waits, because many a steady loop waits on
    /// purpose: one that must not asks for `DetectorSet::DEFAULT | DetectorSet::WAITS`.
    pub const DEFAULT: Self = {
        let always =
            Self::ALLOCATOR.union(Self::FAULT_TRAP).union(Self::FAULT_POLL).union(Self::MEMORY_CALLS);
        if cfg!(feature = "interpose-malloc") { always.union(Self::FOREIGN_MALLOC) } else { always }
    };

    /// The names of all detectors, in the order of their bits.
    pub const NAMES: [&'static str; 7] =
        ["allocator", "pool_events", "fault_trap", "fault_poll", "memory_calls", "foreign_malloc", "waits"];

    /// The names of the detectors in the set, as in reports.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let is_in = move |(bit, _): &(usize, &'static str)| self.bits() & 1 << bit != 0;
        Self::NAMES.into_iter().enumerate().filter(is_in).map(|(_, name)| name)
    }

    /// The detectors that see all events of a class, each of them: if none of them is live, some may have gone unseen. Traps
    /// are not among those of faults: they do not see faults of the kernel itself ([design/contract.md
    /// `.fault.trap`](crate::design::contract)). None for amnesties, which the contract itself counts.
    #[must_use]
    pub const fn that_see(class: ViolationClass) -> Self {
        use ViolationClass::*;
        match class {
            Alloc | Realloc | Dealloc => Self::ALLOCATOR,
            Fill | Growth | Collection | Pause => Self::POOL_EVENTS,
            MemoryCall => Self::MEMORY_CALLS,
            MinorFault | MajorFault => Self::FAULT_POLL,
            ForeignMalloc => Self::FOREIGN_MALLOC,
            Wait => Self::WAITS,
            AmnestyOverrun => Self::empty(),
        }
    }
}
