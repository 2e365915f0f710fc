//! The format of typed objects, and the kinds of their pools.

use core::ptr::NonNull;

use tripoint_core::{Align, Block, RankSet};

use crate::references::format::Format;
use crate::references::scan::Scan;
use crate::swept::class::{Kind, sealed};
use crate::typed::table::{Header, WORD};

/// Objects that begin with a header of one word, which leads to their table.
#[derive(Debug)]
pub(crate) struct Typed;

// SAFETY: the sizes in an object's table are those that it was reserved with, and the count of its items never
// changes. A header is exchanged only for one with the same sizes. An object's table passes on all of its references
// (`Trace`).
unsafe impl Format for Typed {
    #[inline(always)]
    fn align(&self) -> Align {
        Align::WORD
    }

    fn header(&self) -> usize {
        WORD
    }

    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises that an object begins here.
        unsafe { Header::of(object) }.object_size()
    }

    unsafe fn type_name(&self, object: NonNull<u8>) -> Option<&'static str> {
        // SAFETY: the caller promises that an object begins here.
        Some(unsafe { Header::of(object) }.name())
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole objects in a row.
            let header = unsafe { Header::of(objects.base().add(at)) };
            // SAFETY: the caller promises that no thread uses them.
            unsafe { header.trace_object(scan) };
            at += header.object_size().max(WORD);
        }
    }
}

/// Objects with exact references, which are allocated only while their mutator runs and does not give way.
#[derive(Debug)]
pub(crate) enum TracedInside {}

/// Objects without references, which are allocated only while their mutator runs and does not give way.
#[derive(Debug)]
pub(crate) enum LeafInside {}

impl sealed::Sealed for TracedInside {}
impl sealed::Sealed for LeafInside {}

impl<F: Format> Kind<F> for TracedInside {
    const CLASS: &'static str = "AMS";
    const RANKS: RankSet = RankSet::EXACT;
    const GIVES_WAY: bool = false;
}

impl<F: Format> Kind<F> for LeafInside {
    const CLASS: &'static str = "LO";
    const RANKS: RankSet = RankSet::empty();
    const GIVES_WAY: bool = false;
}
