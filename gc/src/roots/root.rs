//! Roots: where references come from that keep objects, other than objects.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::NonNull;

use tripoint_core::{Addr, Lock};

use crate::list::Linked;
use crate::roots::stack::Stack;
use crate::scans::pairs::Pairs;
use crate::scans::scan::Scan;

/// Which words of a table are references, and which of their bits belong to them (MPS: manual, "tagged
/// references").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tag {
    /// The bits of a word that are its tag: they are no part of the address.
    pub mask: usize,
    /// The tag of words that are references. By default there is no tag, and all words are.
    pub pattern: usize,
}

/// Scans a root: passes each reference to the [`Scan`]. The pointer is the one that it was registered with.
pub type RootFunction = unsafe fn(*mut (), &mut Scan<'_>);

/// Where a root's references are: a word that says which of these it is, and then words in the order of the fields, for
/// readers outside of the process (design/inspection.md `.roots`).
#[derive(Clone, Copy, Debug)]
#[repr(C, usize)]
pub(crate) enum Place {
    /// Exact references in a row.
    Table { base: NonNull<*mut u8>, count: usize, tag: Tag } = 0,
    /// Exact references in a row that keep nothing.
    Weak { base: NonNull<*mut u8>, count: usize, tag: Tag } = 1,
    /// Words in a row that may be references.
    Ambiguous { base: NonNull<usize>, count: usize } = 2,
    /// Each word of a thread's stack.
    Stack(NonNull<Stack>) = 3,
    /// What a function finds. If `outline` is not zero, readers outside of the process find it by the words at that
    /// address, as those of typed roots are.
    Function {
        scan: RootFunction,
        data: *mut (),
        #[expect(dead_code, reason = "readers outside of the process read it")]
        outline: usize,
    } = 4,
    /// What a function finds, which keeps nothing.
    WeakFunction { scan: RootFunction, data: *mut () } = 5,
    /// The same, which ends before finalization.
    ShortFunction { scan: RootFunction, data: *mut () } = 6,
    /// The objects of a transform.
    Pairs(NonNull<Lock<Pairs>>) = 7,
}

impl Place {
    /// What is registered, as an event says it: the name of its kind, an address, a number of words, and their tag.
    pub(crate) fn registered(self) -> (&'static str, Addr, usize, Tag) {
        let none = Tag::default();
        match self {
            Self::Table { base, count, tag } => ("table", Addr::of(base.as_ptr()), count, tag),
            Self::Weak { base, count, tag } => ("weak table", Addr::of(base.as_ptr()), count, tag),
            Self::Ambiguous { base, count } => ("ambiguous area", Addr::of(base.as_ptr()), count, none),
            // SAFETY: the stack is part of what a heap keeps of a mutator, as long as the heap lives, and is only ever
            // borrowed shared.
            Self::Stack(stack) => ("stack", unsafe { stack.as_ref() }.cold_end(), 0, none),
            Self::Function { data, .. } => ("function", Addr::of(data), 0, none),
            Self::WeakFunction { data, .. } => ("weak function", Addr::of(data), 0, none),
            Self::ShortFunction { data, .. } => ("short weak function", Addr::of(data), 0, none),
            Self::Pairs(pairs) => ("pairs of a transform", Addr::of(pairs.as_ptr()), 0, none),
        }
    }
}

/// Distinguishes a root from the others of its heap ([`Root::id`](crate::Root::id)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RootId(usize);

/// A root in the list of a heap.
#[derive(Debug)]
pub(crate) struct RootRecord {
    next: Cell<Option<NonNull<Self>>>,
    place: Place,
}

// SAFETY: a record is a place in memory that any thread that stops the heap may read: the caller that
// registered it promised so. The link is used under the lock of the list.
unsafe impl Send for RootRecord {}

impl Linked for RootRecord {
    fn next(&self) -> &Cell<Option<NonNull<Self>>> {
        &self.next
    }
}

impl RootRecord {
    /// Where in a record the next one and its place are, for readers outside of the process.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Self, next), offset_of!(Self, place)];

    /// A record that is in no list.
    ///
    /// # Safety
    /// - As long as it is in the list of a heap, what is at the place is as the function of [`Heap`](crate::Heap) demands
    ///   that registers roots of this kind.
    pub(crate) const unsafe fn new(place: Place) -> Self {
        Self { next: Cell::new(None), place }
    }

    /// The root's identifier: records that are in the list at the same time are at different places.
    pub(crate) fn id(&self) -> RootId {
        RootId(self.event_address().get())
    }

    /// Its address, by which events name it.
    pub(crate) fn event_address(&self) -> Addr {
        Addr::of(self)
    }

    /// Ends the registration of a stack: the record was taken off the list.
    pub(crate) fn end(&self) {
        if let Place::Stack(stack) = self.place {
            // SAFETY: the stack is part of what a heap keeps of a mutator, as long as the heap lives, and is only ever
            // borrowed shared.
            unsafe { stack.as_ref() }.end();
        }
    }

    /// Passes its references to `scan`.
    pub(crate) fn scan(&self, scan: &mut Scan<'_>) {
        match self.place {
            // SAFETY: the one that made the record promised that `count` references are there, and may be
            // read and written while the heap is stopped.
            Place::Table { base, count, tag } => unsafe { scan_table(base, count, tag, scan) },
            // It keeps nothing.
            Place::Weak { .. } | Place::WeakFunction { .. } | Place::ShortFunction { .. } => {}
            Place::Ambiguous { base, count } => {
                for index in 0..count {
                    // SAFETY: the one that made the record promised that `count` words are there, and
                    // may be read while the heap is stopped.
                    scan.fix_ambiguous(unsafe { base.add(index).read() });
                }
            }
            Place::Stack(stack) => {
                // SAFETY: the stack is part of what a heap keeps of a mutator, as long as the heap lives, and is only
                // ever borrowed shared.
                let stack = unsafe { stack.as_ref() };
                let at = scan.at_stop();
                // SAFETY: the one that made the record promised what is demanded of stacks that are roots.
                unsafe { stack.for_each_word(at, |word| scan.fix_ambiguous(word)) };
            }
            // SAFETY: the one that made the record promised that it may be called with this data
            // while the heap is stopped.
            Place::Function { scan: function, data, .. } => unsafe { function(data, scan) },
            // SAFETY: pairs are valid as long as their root is registered, and only ever borrowed shared.
            Place::Pairs(pairs) => unsafe { pairs.as_ref() }.lock().scan(scan),
        }
    }

    /// Passes its weak references to `scan`, when all that is kept was reached.
    pub(crate) fn scan_weak(&self, scan: &mut Scan<'_>) {
        match self.place {
            // SAFETY: the one that made the record promised that `count` references are there, and may be
            // read and written while the heap is stopped.
            Place::Weak { base, count, tag } => unsafe { scan_table(base, count, tag, scan) },
            // SAFETY: the one that made the record promised that it may be called with this data
            // while the heap is stopped.
            Place::WeakFunction { scan: function, data } => unsafe { function(data, scan) },
            Place::Table { .. }
            | Place::Ambiguous { .. }
            | Place::Stack(_)
            | Place::Function { .. }
            | Place::ShortFunction { .. }
            | Place::Pairs(_) => {}
        }
    }

    /// Passes its weak references to `scan` that end before finalization, when all that roots lead to was reached.
    pub(crate) fn scan_short(&self, scan: &mut Scan<'_>) {
        if let Place::ShortFunction { scan: function, data } = self.place {
            // SAFETY: the one that made the record promised that it may be called with this data
            // while the heap is stopped.
            unsafe { function(data, scan) };
        }
    }

    /// Forgets the pairs of a transform, if these are the root, of which `is_gone` is true of an object.
    pub(crate) fn forget_all(&self, is_gone: impl Fn(*mut u8) -> bool) {
        if let Place::Pairs(pairs) = self.place {
            // SAFETY: pairs are valid as long as their root is registered, and only ever borrowed shared.
            unsafe { pairs.as_ref() }.lock().forget_all(is_gone);
        }
    }
}

/// Fixes the references of a table that have the tag.
///
/// # Safety
/// - That many words are there, and may be read and written.
unsafe fn scan_table(base: NonNull<*mut u8>, count: usize, tag: Tag, scan: &mut Scan<'_>) {
    for index in 0..count {
        // SAFETY: as many words are there as `index` counts.
        let word = unsafe { base.add(index).as_ptr() };
        // SAFETY: the caller promises that the words may be read and written.
        unsafe { scan_tagged(word, tag, scan) };
    }
}

/// Fixes the reference in `word`, if it has the tag, and leaves the tag as it is.
///
/// # Safety
/// - The word may be read and written.
unsafe fn scan_tagged(word: *mut *mut u8, tag: Tag, scan: &mut Scan<'_>) {
    // SAFETY: the caller promises that it may be read.
    let tagged = unsafe { word.read() };
    if tagged.addr() & tag.mask == tag.pattern {
        let mut reference = tagged.map_addr(|addr| addr & !tag.mask);
        scan.fix(&mut reference);
        // SAFETY: the caller promises that it may be written.
        unsafe { word.write(reference.map_addr(|addr| addr | tag.pattern)) };
    }
}
