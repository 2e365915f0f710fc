//! Where the segments and the buffers of a pool are, for readers outside of the process (design/inspection.md `.pools`).

use core::cell::Cell;
use core::ptr::NonNull;

use crate::list::Linked;
use crate::outlines::format_outline::FormatOutline;

/// A pool in the list of its heap that readers follow.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PoolOutline {
    pub(crate) next: Cell<Option<NonNull<Self>>>,
    /// The number of the pool in its arena.
    pub(crate) id: usize,
    /// The first byte of the name of its class, and how many there are.
    pub(crate) class: Option<&'static u8>,
    pub(crate) class_size: usize,
    /// The word with the first segment of the youngest generation, how far it is to that of the next one, and how many
    /// generations there are.
    pub(crate) segments: usize,
    pub(crate) segments_step: usize,
    pub(crate) generations: usize,
    /// The word with the first segment that waits to be swept.
    pub(crate) aside: usize,
    /// The registry of its buffers.
    pub(crate) buffers: usize,
    /// Where, in what the class of a buffer keeps, the ends of the memory are whose objects were not noted.
    pub(crate) held: [usize; 2],
    pub(crate) format: FormatOutline,
}

// SAFETY: an outline is numbers, which no thread changes. The link is used under the lock of its list.
unsafe impl Send for PoolOutline {}

impl Linked for PoolOutline {
    fn next(&self) -> &Cell<Option<NonNull<Self>>> {
        &self.next
    }
}
