//! The memory that a pool hands to a buffer.

use core::ptr::NonNull;

use crate::traits::block::Block;
use crate::values::segment::Segment;

/// Memory for a buffer: `[base, init)` is allocated already, and the buffer allocates in
/// `[init, limit)`.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// All of the memory.
    pub block: Block,
    /// The bytes from the base that are allocated already; zero in most classes.
    pub preallocated: usize,
    /// The segment that the block lies in, if the pool has segments.
    pub segment: Option<NonNull<Segment>>,
}

impl From<Block> for Fill {
    fn from(block: Block) -> Self {
        Self { block, preallocated: 0, segment: None }
    }
}
