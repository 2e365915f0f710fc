//! The state of a scan: what formats and roots pass their references to.

use core::fmt;

use tripoint_core::{Addr, aver};

use crate::references::segment::SegmentPtr;

/// Finds the segment that an address lies in, if the heap that is being collected has it.
pub(crate) trait Segments {
    fn segment_of(&self, addr: Addr) -> Option<SegmentPtr>;

    /// Whether an exact reference to `addr` leads to an object that was not reached.
    fn is_white(&self, addr: Addr) -> bool;
}

/// A reference as a format or a root passed it on.
#[derive(Debug)]
pub(crate) enum Shown<'r> {
    /// At the place where it lies, or where a tag was taken off it.
    Exact(&'r mut *mut u8),
    /// A word that may be one.
    Ambiguous(usize),
}

impl Shown<'_> {
    /// The address that it refers to.
    pub(crate) fn addr(&self) -> Addr {
        match self {
            Self::Exact(reference) => Addr::of(**reference),
            Self::Ambiguous(word) => Addr::new(*word),
        }
    }
}

/// What a scan is for.
enum Purpose<'s> {
    /// To keep what is referred to, in these segments.
    Keep(&'s dyn Segments),
    /// To show the references: nothing is kept.
    Show(&'s mut dyn FnMut(Shown<'_>)),
}

/// What is found while references are scanned. It is passed to [`Format::scan`](crate::Format::scan) and to
/// root functions, which pass each reference on, of the objects or roots that they were asked to scan.
pub struct Scan<'s> {
    purpose: Purpose<'s>,
    references: usize,
    examined: usize,
    /// Whether references keep nothing any more, and are cleared if their objects are dead.
    is_weak: bool,
}

impl<'s> Scan<'s> {
    pub(crate) fn new(segments: &'s dyn Segments) -> Self {
        Self { purpose: Purpose::Keep(segments), references: 0, examined: 0, is_weak: false }
    }

    /// A scan that passes references to `show`.
    pub(crate) fn show(show: &'s mut dyn FnMut(Shown<'_>)) -> Self {
        Self { purpose: Purpose::Show(show), references: 0, examined: 0, is_weak: false }
    }

    /// Fixes an exact reference: the object that it refers to is kept. A reference to memory of no automatic
    /// pool of the heap is left alone, so null, numbers that are no addresses, and pointers to other
    /// memory may be fixed too.
    ///
    /// A weak reference, of a weak root or an object of an [`Awl`](crate::Awl), keeps nothing: it is set to null here if its object is dead.
    ///
    /// The reference is to be where it is read from, because a class that moves objects writes it.
    /// (No class does so yet.) A debug build panics if no object begins where it refers to; a release build ignores it.
    #[inline]
    pub fn fix(&mut self, reference: &mut *mut u8) {
        self.references += 1;
        let segments = match &mut self.purpose {
            Purpose::Keep(segments) => *segments,
            Purpose::Show(show) => return show(Shown::Exact(reference)),
        };
        let addr = Addr::of(*reference);
        if self.is_weak && segments.is_white(addr) {
            *reference = core::ptr::null_mut();
            return;
        }
        let Some(segment) = segments.segment_of(addr) else { return };
        let description = segment.get();
        let object = Addr::new(addr.get().wrapping_sub(description.shape().header));
        let is_object = description.has_place(object) && segment.reach(object);
        aver!(is_object, "an exact reference to {addr}, where no object is");
    }

    /// Fixes a word that may be a reference: if it is an address in an object, anywhere in it, or
    /// behind it up to the next one, the object is kept and does not move.
    #[inline]
    pub fn fix_ambiguous(&mut self, word: usize) {
        self.references += 1;
        let segments = match &mut self.purpose {
            Purpose::Keep(segments) => *segments,
            Purpose::Show(show) => return show(Shown::Ambiguous(word)),
        };
        let addr = Addr::new(word);
        let Some(segment) = segments.segment_of(addr) else { return };
        if let Some(object) = segment.object_around(addr) {
            segment.reach(object);
        }
    }

    /// Goes on with weak references: all that is kept was reached.
    pub(crate) const fn begin_weak(&mut self) {
        self.is_weak = true;
    }

    /// Whether an exact reference leads to an object that was not reached so far.
    pub(crate) fn is_dead(&self, reference: *mut u8) -> bool {
        match &self.purpose {
            Purpose::Keep(segments) => segments.is_white(Addr::of(reference)),
            Purpose::Show(_) => false,
        }
    }

    /// Notes that so many bytes of objects are passed to their format.
    pub(crate) const fn examine(&mut self, bytes: usize) {
        self.examined += bytes;
    }

    /// The bytes of objects that were passed to their formats.
    pub(crate) const fn examined(&self) -> usize {
        self.examined
    }

    /// How many references were fixed.
    #[must_use]
    pub const fn references(&self) -> usize {
        self.references
    }
}

impl fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("references", &self.references).finish_non_exhaustive()
    }
}
