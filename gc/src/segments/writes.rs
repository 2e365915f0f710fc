//! Who says which objects were written.

use core::fmt;

/// Who said which objects of generations that were not collected were written. If it differs between pools, this is the
/// one who says the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Writes {
    /// It did not have to be known: all objects that have references were collected.
    #[default]
    Unneeded,
    /// The mutators ([`Format::notes_writes`](crate::Format::notes_writes)).
    Noted,
    /// The platform ([`Arena::write_watch`](tripoint_core::Arena::write_watch)), by pages.
    Watched,
    /// Neither mutators nor the platform: all older objects of a pool were looked at.
    Unknown,
}

impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unneeded => "no writes had to be known",
            Self::Noted => "mutators noted what they wrote",
            Self::Watched => "the platform watched writes",
            Self::Unknown => "all older objects of a pool were looked at",
        })
    }
}
