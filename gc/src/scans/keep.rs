//! What a scan asks of the heap that is being collected: to keep what references lead to.

use core::ptr::NonNull;

use tripoint_core::{Addr, AddrRange};

use crate::scans::workspace::Loan;
use crate::segments::generation::Generation;
use crate::segments::segment::SegmentPtr;

/// What became of the object that an exact reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is not an object of the heap that is being collected.
    Elsewhere,
    /// It is kept where it is, in this generation.
    Here(Generation),
    /// It is kept, and this is what refers to it now. It is in this generation.
    At(NonNull<u8>, Generation),
    /// The address is one of the heap, but no object is there.
    Nowhere,
}

/// Keeps what references lead to, if it is of the heap that is being collected.
pub(crate) trait Segments {
    /// The addresses that may be in one of them.
    fn addresses(&self) -> AddrRange;

    /// Keeps the object that an exact reference leads to.
    fn keep_exact(&self, addr: Addr) -> Kept;

    /// Keeps the object that an ambiguous reference leads to, where it is, if it can be known: not if others of its
    /// segment may have moved. Returns the generation of what is there.
    fn keep_ambiguous(&self, addr: Addr, may_have_moved: bool) -> Option<Generation>;

    /// The segment of the heap that `addr` lies in.
    fn segment_of(&self, addr: Addr) -> Option<SegmentPtr>;

    /// Whether an exact reference to `addr` leads to an object that is condemned and was not reached.
    fn is_white(&self, addr: Addr) -> bool;

    /// Whether an exact reference to `addr` leads to an object. Asked before objects move.
    fn is_object(&self, addr: Addr) -> bool;

    /// Takes at least `size` bytes for a part of the collection; `None` if they are refused.
    fn lend(&self, size: usize) -> Option<Loan>;

    /// Takes memory back.
    ///
    /// # Safety
    /// - It was lent by this, and nothing uses it any more.
    unsafe fn give_back(&self, loan: Loan);
}
