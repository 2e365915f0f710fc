//! What a check of a frozen segment finds.

use core::fmt;

use tripoint_core::Addr;

/// What is wrong with the objects of a frozen segment.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrozenFault {
    /// An object refers to an object of the heap.
    Reference {
        /// The object's base.
        object: Addr,
        /// What it refers to.
        to: Addr,
    },
    /// The objects do not end where the segment says that its last object does.
    Size {
        /// The base of the last object that begins in the segment.
        object: Addr,
        /// The bytes that its format says it has.
        size: usize,
    },
}

impl fmt::Display for FrozenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference { object, to } => write!(
                f,
                "the frozen object at {object} refers to {to} in the heap, and keeps nothing there: copy that too"
            ),
            Self::Size { object, size } => write!(
                f,
                "the frozen object at {object} has {size} bytes, and does not end in the segment: update its end"
            ),
        }
    }
}

tripoint_core::debug_as_text!(FrozenFault: Reference, Size);

impl core::error::Error for FrozenFault {}
