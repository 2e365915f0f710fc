//! What a thread does to memory.

/// The function that allocated an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `malloc`, or `realloc` of nothing.
    Plain,
    /// `calloc`: every byte is zero.
    Zeroed,
    /// `posix_memalign` and its relatives, with the binary logarithm of the alignment.
    Aligned(u8),
}

impl Kind {
    /// The largest alignment that a trace can name: 2^47, the half of an address space.
    pub(crate) const MAX_ALIGN_LOG2: u8 = 47;

    /// The alignment that was asked for, in bytes, if it was.
    pub(crate) const fn align(self) -> Option<usize> {
        match self {
            Self::Plain | Self::Zeroed => None,
            Self::Aligned(log2) => 1_usize.checked_shl(log2 as u32),
        }
    }
}

/// One operation. Objects are numbered from zero, in the order of their allocation
/// ([design/cli-traces.md `.object`](crate::design::cli_traces)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Allocates the next object.
    Alloc {
        kind: Kind,
        size: u64,
    },
    /// Changes the size of an object, which may move.
    Realloc {
        object: u64,
        size: u64,
    },
    Free {
        object: u64,
    },
    /// The thread does nothing after this.
    EndThread,
    /// The process forked a child, which has a trace of its own.
    Fork {
        child: u32,
    },
}

/// An operation and the thread that did it. Threads are numbered from zero, in the order of their first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) thread: u32,
    pub(crate) operation: Operation,
}
