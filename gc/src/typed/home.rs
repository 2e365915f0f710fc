//! Which pool an object is in.

use crate::typed::table::WORD;
use crate::typed::trace::Trace;

/// Which pool the objects of a type are in. It is decided at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// That of objects with references, which move.
    Moved,
    /// That of objects without references, which move.
    MovedLeaves,
    /// That of objects with references, which stay where they are.
    Fixed,
    /// That of objects without references, which stay where they are.
    FixedLeaves,
    /// That of objects with weak links, which stay where they are.
    Weak,
}

impl Home {
    /// The pool of objects whose values are `T`, or have items of type `T`. Where a value that is more aligned than a
    /// word lies in its object depends on the object's address, so such objects do not move (design/gc-typed.md
    /// `.typed.align`).
    pub(crate) const fn of<T: Trace>() -> Self {
        match (align_of::<T>() <= WORD, T::HAS_REFERENCES) {
            _ if T::HAS_WEAK_LINKS => Self::Weak,
            (true, true) => Self::Moved,
            (true, false) => Self::MovedLeaves,
            (false, true) => Self::Fixed,
            (false, false) => Self::FixedLeaves,
        }
    }
}
