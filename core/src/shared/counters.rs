//! Byte counters of fills and empties (MPS design.mps.buffer, "count").

#[cfg(target_has_atomic = "64")]
mod one_word;
#[cfg(any(test, not(target_has_atomic = "64")))]
#[cfg_attr(target_has_atomic = "64", allow(unreachable_pub))]
mod two_words;

#[cfg(target_has_atomic = "64")]
pub use one_word::Counter;
#[cfg(not(target_has_atomic = "64"))]
pub use two_words::Counter;

/// For which side a buffer allocates (MPS design.mps.buffer, "count.other").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferKind {
    /// The client program's.
    #[default]
    Mutator,
    /// The pool system's own.
    Internal,
}

/// The counts of all buffers of an arena, in bytes unless a field says otherwise.
///
/// Every field only grows, except `alloc_mutator`, from which an attach subtracts what was
/// allocated before the buffer got its memory. That field is exact when no buffer is
/// attached (MPS design.mps.buffer, "count.other").
#[derive(Debug, Default)]
pub struct ArenaCounts {
    /// The bytes of fills of mutator buffers.
    pub fill_mutator: Counter,
    /// The bytes of fills of internal buffers.
    pub fill_internal: Counter,
    /// The bytes that mutator buffers returned unused.
    pub empty_mutator: Counter,
    /// The bytes that internal buffers returned unused.
    pub empty_internal: Counter,
    /// The bytes allocated in mutator buffers, as of their last detach. The count is exact
    /// when they are emptied.
    pub alloc_mutator: Counter,
    /// The number of fills of either kind.
    pub fills: Counter,
    /// The number of trips that owners have handled.
    pub trips: Counter,
    /// The number of flips that fixed the objects of an attached buffer. If the owner re-armed
    /// the buffer before the flip fixed anything, only the trip is counted.
    pub flips: Counter,
    /// The bytes that the arena committed, since it was created.
    pub growth: Counter,
    /// The number of requests that were refused because the arena was frozen.
    pub growth_refused: Counter,
}

impl ArenaCounts {
    /// Counts an attach: the bytes of `[base, init)`, which were allocated before, and those of
    /// `[init, limit)`, which are fresh.
    pub fn attach(&self, kind: BufferKind, preallocated: usize, fresh: usize) {
        self.fills.add(1);
        match kind {
            BufferKind::Mutator => {
                self.fill_mutator.add(fresh as u64);
                if preallocated != 0 {
                    self.alloc_mutator.sub(preallocated as u64);
                }
            }
            BufferKind::Internal => self.fill_internal.add(fresh as u64),
        }
    }

    /// Counts a detach: the bytes of `[base, init)`, which are allocated, and those of
    /// `[init, limit)`, which are unused.
    pub fn detach(&self, kind: BufferKind, allocated: usize, unused: usize) {
        match kind {
            BufferKind::Mutator => {
                if unused != 0 {
                    self.empty_mutator.add(unused as u64);
                }
                self.alloc_mutator.add(allocated as u64);
            }
            BufferKind::Internal => self.empty_internal.add(unused as u64),
        }
    }

    /// Counts `size` bytes of objects that were popped. A buffer had allocated them, and counted
    /// them when it was detached from them.
    // (design/frames.md `.count`)
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
