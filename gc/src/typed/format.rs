//! The format of typed objects, and the kinds of their pools.

use core::ptr::NonNull;

use tripoint_core::{Align, Block, RankSet};

use crate::classes::class::{Kind, sealed};
use crate::outlines::format_outline::FormatOutline;
use crate::scans::format::{Format, MovableFormat};
use crate::scans::scan::Scan;
use crate::typed::table::{Header, Table, WORD};

/// Objects that begin with a header of one word, which leads to their table.
#[derive(Debug)]
pub(crate) struct Typed;

// SAFETY: the sizes in an object's table are those that it was reserved with, and the count of its items never
// changes. A header is exchanged only for one with the same sizes. References are written in an object that was
// committed by `Link::set` alone, which notes that, or before any collection begins (`Inside::slice`). An object's table passes on all of its references
// (`Trace`).
unsafe impl Format for Typed {
    #[inline(always)]
    fn align(&self) -> Align {
        Align::WORD
    }

    fn header(&self) -> usize {
        WORD
    }

    /// Each header is an address of this program.
    fn is_for_images(&self) -> bool {
        false
    }

    #[inline]
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises that an object begins here.
        unsafe { Header::of(object) }.object_size()
    }

    #[inline(always)]
    fn notes_writes(&self) -> bool {
        true
    }

    unsafe fn type_name(&self, object: NonNull<u8>) -> Option<&'static str> {
        // SAFETY: the caller promises that an object begins here.
        Some(unsafe { Header::of(object) }.name())
    }

    fn outline(&self) -> FormatOutline {
        FormatOutline::typed(Table::OFFSETS)
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

// SAFETY: a value is moved as any value in Rust is moved: while nothing borrows it, because no mutator is inside its heap.
// All of its references are fixed by `scan`. An object whose value lies elsewhere in it at another address is in a pool
// that does not move (`Home::of`).
unsafe impl MovableFormat for Typed {}

/// Objects with references, which move. As all kinds here, they are allocated only while their mutator runs and does
/// not give way.
#[derive(Debug)]
pub(crate) enum MovedInside {}

/// Objects without references, which move.
#[derive(Debug)]
pub(crate) enum MovedLeafInside {}

/// Objects with references, which stay where they are.
#[derive(Debug)]
pub(crate) enum FixedInside {}

/// Objects without references, which stay where they are.
#[derive(Debug)]
pub(crate) enum FixedLeafInside {}

/// Objects with references, of which some are weak. They stay where they are.
#[derive(Debug)]
pub(crate) enum WeakInside {}

/// Implements a kind of pools.
macro_rules! kinds {
    ($($name:ident: $class:literal, $ranks:expr, moves: $moves:literal;)*) => {$(
        impl sealed::Sealed for $name {}

        impl Kind<Typed> for $name {
            const CLASS: &'static str = $class;
            const RANKS: RankSet = $ranks;
            const MOVES: bool = $moves;
            const GIVES_WAY: bool = false;
        }
    )*};
}

kinds! {
    MovedInside: "AMC", RankSet::EXACT, moves: true;
    MovedLeafInside: "AMCZ", RankSet::empty(), moves: true;
    FixedInside: "AMS", RankSet::EXACT, moves: false;
    FixedLeafInside: "LO", RankSet::empty(), moves: false;
    WeakInside: "AWL", RankSet::EXACT.union(RankSet::WEAK), moves: false;
}
