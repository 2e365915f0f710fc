//! The state of a scan: what formats and roots pass their references to.

use core::fmt;

use core::ptr::NonNull;

use tripoint_core::Addr;

/// What became of the object that an exact reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is not an object of the heap that is being collected.
    Elsewhere,
    /// It is kept where it is.
    Here,
    /// It is kept, and this is what refers to it now.
    At(NonNull<u8>),
    /// The address is one of the heap, but no object is there.
    Nowhere,
}

/// Keeps what references lead to, if it is of the heap that is being collected.
pub(crate) trait Segments {
    /// Keeps the object that an exact reference leads to.
    fn keep_exact(&self, addr: Addr) -> Kept;

    /// Keeps the object that an ambiguous reference leads to, where it is.
    fn keep_ambiguous(&self, addr: Addr);

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

/// Which references a collection fixes. Objects that ambiguous ones lead to must not move, so these come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// The ambiguous references of roots.
    AmbiguousRoots,
    /// The exact references of roots.
    ExactRoots,
    /// Those of objects.
    Objects,
    /// Weak ones, which are cleared if their objects are dead, when all that is kept was reached.
    Weak,
}

/// What a scan is for.
enum Purpose<'s> {
    /// To keep what is referred to, in these segments.
    Keep(&'s dyn Segments, Pass),
    /// To show the references: nothing is kept.
    Show(&'s mut dyn FnMut(Shown<'_>)),
}

/// The state of a scan. It is passed to [`Format::scan`](crate::Format::scan) and to root functions, which pass it each
/// reference of the objects or roots that they scan.
pub struct Scan<'s> {
    purpose: Purpose<'s>,
    references: usize,
    examined: usize,
    nowhere: Option<Addr>,
}

impl<'s> Scan<'s> {
    /// A scan that keeps what is referred to, beginning with [`Pass::AmbiguousRoots`].
    pub(crate) fn new(segments: &'s dyn Segments) -> Self {
        Self::begin(Purpose::Keep(segments, Pass::AmbiguousRoots))
    }

    /// Goes on with another pass.
    pub(crate) const fn begin_pass(&mut self, next: Pass) {
        if let Purpose::Keep(_, pass) = &mut self.purpose {
            *pass = next;
        }
    }

    /// A scan that passes references to `show`.
    pub(crate) fn show(show: &'s mut dyn FnMut(Shown<'_>)) -> Self {
        Self::begin(Purpose::Show(show))
    }

    const fn begin(purpose: Purpose<'s>) -> Self {
        Self { purpose, references: 0, examined: 0, nowhere: None }
    }

    /// Fixes an exact reference: the object that it refers to is kept, and if the object moves, the reference is
    /// changed. References that do not lead into an automatic pool of the heap are left alone. So null, numbers, and
    /// pointers to other memory may be fixed, too.
    ///
    /// A weak reference, of a weak root or an object of an [`Awl`](crate::Awl), keeps nothing: it is set to null if its
    /// object is dead.
    ///
    /// Pass the reference in its place in the object or root, so that it can be changed there.
    ///
    /// # Panics
    /// In debug builds, when the collection is over, if the reference leads into an automatic pool of the heap, but not
    /// to an object. Release builds leave it alone.
    #[inline]
    pub fn fix(&mut self, reference: &mut *mut u8) {
        let (segments, pass) = match &mut self.purpose {
            Purpose::Keep(_, Pass::AmbiguousRoots) => return,
            Purpose::Keep(segments, pass) => (*segments, *pass),
            Purpose::Show(show) => {
                self.references += 1;
                return show(Shown::Exact(reference));
            }
        };
        self.references += 1;
        let addr = Addr::of(*reference);
        if pass == Pass::Weak && segments.is_white(addr) {
            *reference = core::ptr::null_mut();
            return;
        }
        let kept = segments.keep_exact(addr);
        if let Kept::At(now) = kept {
            *reference = now.as_ptr();
        }
        // A panic here would leave the collection half done (design/gc.md `.collect.whole`).
        if cfg!(debug_assertions) && kept == Kept::Nowhere {
            self.nowhere = Some(addr);
        }
    }

    /// Fixes an ambiguous reference: a word that may be one. If it is an address anywhere in an object, or behind it up
    /// to the next object, that object is kept and does not move.
    ///
    /// This is for roots. A format fixes a word of an object in this way only if it cannot refer to an object
    /// that moves: that may have moved before.
    #[inline]
    pub fn fix_ambiguous(&mut self, word: usize) {
        let segments = match &mut self.purpose {
            Purpose::Keep(_, Pass::ExactRoots) => return,
            Purpose::Keep(segments, _) => *segments,
            Purpose::Show(show) => {
                self.references += 1;
                return show(Shown::Ambiguous(word));
            }
        };
        self.references += 1;
        segments.keep_ambiguous(Addr::new(word));
    }

    /// Whether an exact reference leads to an object that was not reached so far.
    pub(crate) fn is_dead(&self, reference: *mut u8) -> bool {
        match &self.purpose {
            Purpose::Keep(segments, _) => segments.is_white(Addr::of(reference)),
            Purpose::Show(_) => false,
        }
    }

    /// Counts `bytes` bytes of objects that are passed to their format.
    pub(crate) const fn examine(&mut self, bytes: usize) {
        self.examined += bytes;
    }

    /// The bytes of objects that were passed to their formats.
    pub(crate) const fn examined(&self) -> usize {
        self.examined
    }

    /// The address of an exact reference to a place in the heap where no object is: the last one. Noted in debug
    /// builds.
    pub(crate) const fn nowhere(&self) -> Option<Addr> {
        self.nowhere
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
