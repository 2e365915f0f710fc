//! Which detectors there are.

use bitflags::bitflags;

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

    const NAMES: [(Self, &'static str); 7] = [
        (Self::ALLOCATOR, "allocator"),
        (Self::POOL_EVENTS, "pool_events"),
        (Self::FAULT_TRAP, "fault_trap"),
        (Self::FAULT_POLL, "fault_poll"),
        (Self::MEMORY_CALLS, "memory_calls"),
        (Self::FOREIGN_MALLOC, "foreign_malloc"),
        (Self::WAITS, "waits"),
    ];

    /// The names of the detectors in the set, as in reports.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(detector, _)| self.contains(*detector)).map(|(_, name)| name)
    }
}
