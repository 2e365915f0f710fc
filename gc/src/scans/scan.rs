//! The state of a scan: what formats and roots pass their references to.

use core::cell::Cell;
use core::fmt;

use tripoint_core::{Addr, AddrRange};

use crate::at_stop::AtStop;
use crate::scans::approach::Approach;
use crate::scans::keep::{Kept, Segments};
use crate::scans::waiting::Waiting;
use crate::segments::card::CLEAN;
use crate::segments::generation::Generation;

/// A reference as a format or a root passed it on.
#[derive(Debug)]
pub(crate) enum Shown<'r> {
    /// At the place where it lies, or where a tag was taken off it.
    Exact(&'r mut *mut u8),
    /// A word that may be one.
    Ambiguous(usize),
    /// A place for one, which has none at present.
    Nothing,
}

impl Shown<'_> {
    /// The address that it refers to.
    pub(crate) fn addr(&self) -> Addr {
        match self {
            Self::Exact(reference) => Addr::of(**reference),
            Self::Ambiguous(word) => Addr::new(*word),
            Self::Nothing => Addr::ZERO,
        }
    }
}

/// Which references a collection fixes. Objects that ambiguous ones lead to must not move, so these come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pass {
    /// The ambiguous references of roots.
    AmbiguousRoots,
    /// The exact references of roots.
    ExactRoots,
    /// Those of objects.
    Objects,
    /// Those of objects, while the values of weak pairs wait for their keys.
    Waiting,
    /// The values of weak pairs whose keys were reached.
    Pairs,
    /// Those that end before finalization: they are cleared if only objects that are to be finalized lead to theirs.
    Short,
    /// Weak ones, which are cleared if their objects are dead, when all that is kept was reached.
    Weak,
}

/// What a scan is for.
enum Purpose<'s> {
    /// To keep what is referred to, in these segments.
    Keep(&'s dyn Segments, Pass),
    /// To count work.
    Nothing,
    /// To show the references: nothing is kept.
    Show(&'s mut dyn FnMut(Shown<'_>), Extent),
}

/// Which references are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Those by which objects keep others.
    Strong,
    /// Weak ones, too.
    All,
}

/// The state of a scan. It is passed to [`Format::scan`](crate::Format::scan) and to root functions, which pass it each
/// reference of the objects or roots that they scan.
pub struct Scan<'s> {
    purpose: Purpose<'s>,
    at: AtStop<'s>,
    /// The addresses of what may be kept.
    range: AddrRange,
    references: usize,
    examined: usize,
    registrations: Cell<usize>,
    roots: usize,
    /// The oldest generation whose objects may be freed or move. Objects of others need not be passed.
    oldest: Generation,
    /// How much was done, in bytes, and how much may be done.
    spent: usize,
    allowance: usize,
    nowhere: Option<Addr>,
    /// Whether weak pairs were met that have a key.
    has_pairs: bool,
    /// The values that wait for their keys, if they do.
    waiting: Option<Waiting<'s>>,
    /// What the card of the object that is being scanned may refer to.
    card: u8,
}

impl<'s> Scan<'s> {
    /// A scan that keeps what is referred to, beginning with [`Pass::AmbiguousRoots`].
    pub(crate) fn new(at: AtStop<'s>, segments: &'s dyn Segments) -> Self {
        Self { range: segments.addresses(), ..Self::begin(at, Purpose::Keep(segments, Pass::AmbiguousRoots)) }
    }

    /// This scan, for a collection of the generations up to `oldest`.
    pub(crate) fn up_to(self, oldest: Generation) -> Self {
        Self { oldest, ..self }
    }

    /// The oldest generation whose objects have to be passed.
    pub(crate) const fn oldest(&self) -> Generation {
        self.oldest
    }

    /// A scan that is passed no references: it only counts work.
    pub(crate) fn idle(at: AtStop<'s>) -> Self {
        Self::begin(at, Purpose::Nothing)
    }

    /// Goes on with another pass.
    pub(crate) const fn begin_pass(&mut self, next: Pass) {
        if let Purpose::Keep(_, pass) = &mut self.purpose {
            *pass = next;
        }
    }

    /// A scan that passes references to `show`, except weak ones.
    pub(crate) fn show(at: AtStop<'s>, show: &'s mut dyn FnMut(Shown<'_>)) -> Self {
        Self::begin(at, Purpose::Show(show, Extent::Strong))
    }

    /// A scan that passes all references to `show`, which may change exact ones.
    pub(crate) fn show_all(at: AtStop<'s>, show: &'s mut dyn FnMut(Shown<'_>)) -> Self {
        Self::begin(at, Purpose::Show(show, Extent::All))
    }

    /// Says that the heap is stopped whose references are passed.
    pub(crate) const fn at_stop(&self) -> AtStop<'s> {
        self.at
    }

    /// Has what this scan will soon read loaded ahead of it: nothing, if it keeps no objects.
    pub(crate) fn approach(&self) -> Approach<'s> {
        match self.purpose {
            Purpose::Keep(segments, _) => Approach::new(Some(segments)),
            Purpose::Nothing | Purpose::Show(..) => Approach::new(None),
        }
    }

    fn begin(at: AtStop<'s>, purpose: Purpose<'s>) -> Self {
        Self {
            purpose,
            at,
            range: AddrRange::default(),
            references: 0,
            examined: 0,
            registrations: Cell::new(0),
            roots: 0,
            oldest: Generation::LAST,
            spent: 0,
            allowance: usize::MAX,
            nowhere: None,
            has_pairs: false,
            waiting: None,
            card: CLEAN,
        }
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
    /// to an object. That breaks the promise of the format or the root, and a release build may take what is there for an
    /// object.
    #[inline]
    pub fn fix(&mut self, reference: &mut *mut u8) {
        let (segments, pass) = match &mut self.purpose {
            Purpose::Keep(_, Pass::AmbiguousRoots) => return,
            Purpose::Keep(segments, pass) => (*segments, *pass),
            Purpose::Nothing => return,
            Purpose::Show(show, _) => {
                self.references += 1;
                return show(Shown::Exact(reference));
            }
        };
        self.references += 1;
        let addr = Addr::of(*reference);
        // Most references that do not lead into this heap need no more than two compares.
        if !self.range.contains(addr) {
            return;
        }
        if pass > Pass::Objects {
            return self.fix_late(segments, pass, reference);
        }
        self.keep(segments, reference);
    }

    /// Fixes a reference that leads into the heap, when the values of weak pairs or weak references are fixed.
    #[cold]
    fn fix_late(&mut self, segments: &dyn Segments, pass: Pass, reference: &mut *mut u8) {
        let addr = Addr::of(*reference);
        let is_white = segments.is_white(addr);
        if is_white && matches!(pass, Pass::Short | Pass::Weak) {
            *reference = core::ptr::null_mut();
            return;
        }
        self.keep(segments, reference);
        if is_white && let Some(waiting) = &mut self.waiting {
            waiting.reach(addr);
        }
    }

    /// Keeps what an exact reference leads to.
    #[inline]
    fn keep(&mut self, segments: &dyn Segments, reference: &mut *mut u8) {
        let addr = Addr::of(*reference);
        let kept = segments.keep_exact(addr);
        match kept {
            Kept::Here(generation) => self.refer_to(generation),
            Kept::At(now, generation) => {
                *reference = now.as_ptr();
                self.refer_to(generation);
            }
            Kept::Elsewhere | Kept::Nowhere => {}
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
        let (segments, may_have_moved) = match &mut self.purpose {
            Purpose::Keep(_, Pass::ExactRoots) => return,
            Purpose::Keep(segments, pass) => (*segments, *pass != Pass::AmbiguousRoots),
            Purpose::Nothing => return,
            Purpose::Show(show, _) => {
                self.references += 1;
                return show(Shown::Ambiguous(word));
            }
        };
        self.references += 1;
        if let Some(generation) = segments.keep_ambiguous(Addr::new(word), may_have_moved) {
            self.refer_to(generation);
        }
    }

    #[inline]
    const fn refer_to(&mut self, generation: Generation) {
        if generation.card() < self.card {
            self.card = generation.card();
        }
    }

    /// The next object is scanned from here on.
    pub(crate) const fn begin_object(&mut self) {
        self.card = CLEAN;
    }

    /// What the object refers to that was scanned last, as its card says it.
    pub(crate) const fn card(&self) -> u8 {
        self.card
    }

    /// Fixes an exact reference that lies by itself. Returns the generation of what it leads to, the last if that is not of
    /// the heap; `None` if this scan does not keep it.
    pub(crate) fn fix_one(&mut self, reference: &mut *mut u8) -> Option<Generation> {
        let keeps = matches!(self.purpose, Purpose::Keep(_, pass) if pass != Pass::AmbiguousRoots);
        self.begin_object();
        self.fix(reference);
        keeps.then(|| Generation::of_card(self.card))
    }

    /// Fixes the reference of a typed root, as [`Scan::fix_one`], and counts it.
    pub(crate) fn fix_root(&mut self, reference: &mut *mut u8) -> Option<Generation> {
        let generation = self.fix_one(reference);
        self.roots += usize::from(generation.is_some());
        generation
    }

    /// Passes by a place of a typed root that has no reference at present. It is shown, so that a walk that is called again
    /// finds where it was, although roots were dropped meanwhile.
    pub(crate) fn pass_by(&mut self) {
        if let Purpose::Show(show, _) = &mut self.purpose {
            show(Shown::Nothing);
        }
    }

    /// Whether this scan keeps what is referred to.
    pub(crate) const fn keeps(&self) -> bool {
        matches!(self.purpose, Purpose::Keep(..))
    }

    /// How many typed roots were fixed.
    pub(crate) const fn roots(&self) -> usize {
        self.roots
    }

    /// Fixes a reference that keeps nothing, of an object whose other references do: it is set to null if its object is
    /// dead. Walks do not show it.
    #[inline]
    pub(crate) fn fix_weak(&mut self, reference: &mut *mut u8) {
        if let Purpose::Keep(_, Pass::Weak) | Purpose::Show(_, Extent::All) = self.purpose {
            self.fix(reference);
        }
    }

    /// Fixes a weak pair: while the key is reached by others, the value is kept. If the key is dead, both are set to null.
    /// Walks show the value, if there is one, as if the key were reached.
    pub(crate) fn fix_pair(&mut self, key: &mut *mut u8, value: &mut *mut u8) {
        match self.purpose {
            _ if key.is_null() => {}
            Purpose::Keep(_, Pass::Pairs | Pass::Waiting) => {
                if !self.is_dead(*key) {
                    self.fix(value);
                } else if let Some(waiting) = &mut self.waiting {
                    waiting.wait(Addr::of(*key), *value);
                }
            }
            Purpose::Keep(_, Pass::Weak) if self.is_dead(*key) => {
                (*key, *value) = (core::ptr::null_mut(), core::ptr::null_mut());
            }
            Purpose::Keep(_, Pass::Weak) | Purpose::Show(_, Extent::All) => {
                self.fix(key);
                self.fix(value);
            }
            Purpose::Keep(..) => self.has_pairs = true,
            Purpose::Show(_, Extent::Strong) => self.fix(value),
            Purpose::Nothing => {}
        }
    }

    /// Whether weak pairs were met that have a key, whose values are not kept yet.
    pub(crate) const fn has_pairs(&self) -> bool {
        self.has_pairs
    }

    /// From here on, the values of weak pairs whose keys were not reached wait for them, as far as there is memory.
    pub(crate) fn begin_waiting(&mut self) {
        match (&mut self.waiting, &self.purpose) {
            (Some(waiting), _) => waiting.forget_all(),
            (waiting, Purpose::Keep(segments, _)) => *waiting = Some(Waiting::new(*segments)),
            _ => {}
        }
    }

    /// Keeps the values whose keys were reached since they began to wait. Returns whether there were any.
    pub(crate) fn fix_ready(&mut self) -> bool {
        let mut is_any = false;
        while let Some(mut value) = self.waiting.as_mut().and_then(Waiting::take_ready) {
            is_any = true;
            // It is fixed in its place when weak references are.
            self.fix(&mut value);
        }
        is_any
    }

    /// No value waits any more.
    pub(crate) fn end_waiting(&mut self) {
        self.waiting = None;
    }

    /// There may be weak pairs that this scan did not meet.
    pub(crate) const fn expect_pairs(&mut self) {
        self.has_pairs = true;
    }

    /// Whether an exact reference leads to an object that was not reached so far.
    pub(crate) fn is_dead(&self, reference: *mut u8) -> bool {
        match &self.purpose {
            Purpose::Keep(segments, _) => segments.is_white(Addr::of(reference)),
            Purpose::Show(..) | Purpose::Nothing => false,
        }
    }

    /// Counts a registration for finalization that is looked at.
    pub(crate) fn count_registration(&self) {
        self.registrations.set(self.registrations.get() + 1);
    }

    /// How many registrations for finalization were looked at.
    pub(crate) const fn registrations(&self) -> usize {
        self.registrations.get()
    }

    /// Counts `bytes` bytes of objects that are passed to their format.
    pub(crate) const fn examine(&mut self, bytes: usize) {
        self.examined += bytes;
        self.spend(bytes);
    }

    /// Allows work of about `bytes` bytes from here on, instead of any.
    pub(crate) const fn allow(&mut self, bytes: usize) {
        (self.spent, self.allowance) = (0, bytes);
    }

    /// Counts work that takes as long as `bytes` bytes of objects.
    #[inline]
    pub(crate) const fn spend(&mut self, bytes: usize) {
        self.spent = self.spent.saturating_add(bytes);
    }

    /// Whether as much was done as is allowed.
    #[inline]
    pub(crate) const fn is_spent(&self) -> bool {
        self.spent >= self.allowance
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
