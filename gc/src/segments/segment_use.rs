//! How the memory of a segment is used.

use tripoint_core::{Block, PoolId};

/// How the memory of a segment is used: an entry of the picture of a heap. What is in no object, no buffer and not free
/// is the segment's own: its description, and bits and cards for its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentUse {
    /// The pool that it is of.
    pub pool: PoolId,
    /// The name of that pool's class.
    pub class: &'static str,
    /// The number of its generation: zero is the youngest. Segments of classes that do not move objects are in the last.
    pub generation: u8,
    /// All of its memory.
    pub memory: Block,
    /// How many objects are in it.
    pub objects: usize,
    /// The bytes of its objects, headers included.
    pub used: usize,
    /// The bytes that buffers hold behind their objects.
    pub held: usize,
    /// The bytes that the pool may fill buffers from.
    pub free: usize,
}

impl SegmentUse {
    /// The bytes that it takes for itself.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        self.memory.size() - self.used - self.held - self.free
    }
}
