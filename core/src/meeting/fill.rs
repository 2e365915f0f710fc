//! What a pool hands to a buffer.

use core::ptr::NonNull;

use crate::meeting::block::Block;
use crate::words::segment::Segment;

/// Memory for a buffer: `[base, init)` is already allocated, `[init, limit)` is
/// the buffer's to allocate in.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// All of the memory.
    pub block: Block,
    /// Bytes from the base that are already allocated; mostly zero.
    pub preallocated: usize,
    /// The segment the block lies in, for pools that have segments.
    pub segment: Option<NonNull<Segment>>,
}

impl From<Block> for Fill {
    fn from(block: Block) -> Self {
        Self { block, preallocated: 0, segment: None }
    }
}
