//! Byte counters of fills and empties (seed 004 `.count`).

#[cfg(target_has_atomic = "64")]
mod one_word;
#[cfg(any(test, not(target_has_atomic = "64")))]
#[cfg_attr(target_has_atomic = "64", allow(unreachable_pub))]
mod two_words;

#[cfg(target_has_atomic = "64")]
pub use one_word::Counter;
#[cfg(not(target_has_atomic = "64"))]
pub use two_words::Counter;

/// Whose allocation a buffer serves (seed 004 `.count.other`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferKind {
    /// The client program's.
    #[default]
    Mutator,
    /// The pool system's own.
    Internal,
}

/// What all buffers of an arena did, in bytes unless said otherwise.
///
/// Every field only grows, except `alloc_mutator`, which takes off what was
/// allocated before the buffer got it; it is exact whenever no buffer is
/// attached (seed 004 `.count.other`).
#[derive(Debug, Default)]
pub struct ArenaCounts {
    /// Bytes given to mutator buffers by fills.
    pub fill_mutator: Counter,
    /// Bytes given to internal buffers by fills.
    pub fill_internal: Counter,
    /// Bytes mutator buffers gave back unused.
    pub empty_mutator: Counter,
    /// Bytes internal buffers gave back unused.
    pub empty_internal: Counter,
    /// Bytes allocated through mutator buffers, as of their last detach: exact
    /// once they were emptied.
    pub alloc_mutator: Counter,
    /// Number of fills of either kind.
    pub fills: Counter,
    /// Number of trips that owners have handled.
    pub trips: Counter,
    /// Number of flips that fixed the objects of an attached buffer. If the owner went on
    /// before the flip fixed anything, only the trip is counted.
    pub flips: Counter,
    /// Bytes the arena newly committed, since it was made.
    pub growth: Counter,
    /// Number of requests refused because the arena was frozen.
    pub growth_refused: Counter,
}

impl ArenaCounts {
    /// Records an attach of `[base, init)` allocated before and `[init, limit)`
    /// fresh, both in bytes.
    pub fn attach(&self, kind: BufferKind, preallocated: usize, fresh: usize) {
        self.fills.add(1);
        match kind {
            BufferKind::Mutator => {
                self.fill_mutator.add(fresh as u64);
                self.alloc_mutator.sub(preallocated as u64);
            }
            BufferKind::Internal => self.fill_internal.add(fresh as u64),
        }
    }

    /// Records a detach of `[base, init)` allocated and `[init, limit)` unused,
    /// both in bytes.
    pub fn detach(&self, kind: BufferKind, allocated: usize, unused: usize) {
        match kind {
            BufferKind::Mutator => {
                self.empty_mutator.add(unused as u64);
                self.alloc_mutator.add(allocated as u64);
            }
            BufferKind::Internal => self.empty_internal.add(unused as u64),
        }
    }

    /// Records that `size` bytes of objects were popped, which a buffer had
    /// allocated and, not being attached to them any more, counted as allocated
    /// (design/frames.md `.count`).
    pub fn pop(&self, kind: BufferKind, size: u64) {
        match kind {
            BufferKind::Mutator => {
                self.empty_mutator.add(size);
                self.alloc_mutator.sub(size);
            }
            BufferKind::Internal => self.empty_internal.add(size),
        }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn attach_and_detach_balance() {
        let counts = ArenaCounts::default();
        counts.attach(BufferKind::Mutator, 16, 100);
        counts.detach(BufferKind::Mutator, 76, 40);
        let allocated = counts.fill_mutator.get() - counts.empty_mutator.get();
        assert_eq!(allocated, 60);
        assert_eq!(counts.alloc_mutator.get(), allocated);
    }

    /// (design/frames.md `.count`)
    #[test]
    fn what_was_popped_is_allocated_no_more() {
        let counts = ArenaCounts::default();
        counts.attach(BufferKind::Mutator, 0, 100);
        counts.detach(BufferKind::Mutator, 60, 40);
        counts.pop(BufferKind::Mutator, 48);
        assert_eq!((counts.alloc_mutator.get(), counts.empty_mutator.get()), (12, 88));
        counts.pop(BufferKind::Internal, 5);
        assert_eq!((counts.empty_internal.get(), counts.empty_mutator.get()), (5, 88));
    }
}
