//! Why a transform was not applied.

use core::fmt;

use tripoint_core::Addr;

use crate::segments::object::Object;
use crate::walks::roots::Referrer;

/// A transform was not applied: no reference was changed. It still has its pairs, so it may be applied later.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotApplied {
    /// The transform is of another heap than the one that is stopped.
    OtherHeap,
    /// An old object is none of an automatic pool of the heap, or a new one is an address in such a pool where no object
    /// begins.
    NoObject(Addr),
    /// An object is the old one of several pairs.
    Twice(Addr),
    /// An object is the old one of a pair and the new one of a pair.
    Chain(Addr),
    /// An ambiguous reference leads to an old object. It may be no reference, so it cannot be changed.
    Ambiguous {
        /// The old object.
        old: Addr,
        /// What has the reference.
        referrer: Referrer,
    },
    /// An old object is the [dependent object](crate::Format::dependent) of another.
    Dependent {
        /// The old object.
        old: Addr,
        /// The object that it depends on.
        of: Object,
    },
}

impl fmt::Display for NotApplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherHeap => {
                f.write_str("the transform is of another heap: stop the heap that it was created for")
            }
            Self::NoObject(addr) => {
                write!(
                    f,
                    "no object begins where a reference to {addr} leads: add references to whole objects"
                )
            }
            Self::Twice(old) => write!(f, "the object at {old} is the old one of several pairs: add it once"),
            Self::Chain(object) => {
                write!(
                    f,
                    "the object at {object} is the old one of a pair and the new one of a pair: apply one transform after the other"
                )
            }
            Self::Ambiguous { old, referrer } => {
                let kind = match referrer {
                    Referrer::Root(_) => "a root",
                    Referrer::Object(_) => "an object",
                };
                write!(
                    f,
                    "{kind} has an ambiguous reference to the old object at {old}: clear the word, and apply the transform again"
                )
            }
            Self::Dependent { old, of } => {
                let of = of.block.range().base();
                write!(
                    f,
                    "the old object at {old} is the dependent object of the one at {of}: replace that one, too, by one with another dependent object"
                )
            }
        }
    }
}

tripoint_core::debug_as_text!(NotApplied: OtherHeap, NoObject, Twice, Chain, Ambiguous, Dependent);

impl core::error::Error for NotApplied {}
