//! Why a heap was not stopped.

use core::fmt;
use core::panic::Location;

/// A heap was not stopped in the time that was allowed. Nothing was done, and all mutators go on.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Postponed {
    /// A mutator did not give way.
    Late(Late),
    /// The heap is stopped already. Another thread has not finished in time; or it is the thread that asks, which does not
    /// wait for itself.
    Busy,
}

/// A mutator that did not give way. There may be more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Its number ([`Mutator::number`](crate::Mutator::number)).
    pub number: u32,
    /// The place in the program at which the mutator last registered, polled while a stop was wanted, or came back from
    /// being away. It has run since then. (Allocation points that give way do not know where they were called.)
    pub seen_at: Option<&'static Location<'static>>,
}

impl fmt::Display for Postponed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("the heap is stopped already: wait until that stop has ended, or end it, if it is of this thread"),
            Self::Late(late) => {
                write!(f, "mutator {} did not give way", late.number)?;
                if let Some(location) = late.seen_at {
                    write!(f, ", which was last seen at {location}")?;
                }
                f.write_str(": have it poll, or be away while it does not use the heap")
            }
        }
    }
}

tripoint_core::debug_as_text!(Postponed: Late, Busy);

impl core::error::Error for Postponed {}
