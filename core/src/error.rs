//! Why a request failed, in MPS's terms, and what to do next
//! (design/core.md `.req.errors`).

use core::fmt;

/// The result of anything that may be refused.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why a request was refused. A refused request allocated nothing and lost nothing.
///
/// The causes are those of MPS (manual, "result codes"), plus
/// [`Error::Frozen`], which the steady-state contract needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The platform refused memory.
    Memory,
    /// The arena has no addresses left for the request.
    Limit,
    /// Granting the request would pass the arena's commit limit.
    CommitLimit,
    /// The platform refused something other than memory: address space, a
    /// barrier registration, a locked page.
    Resource,
    /// The request can never be granted as it stands; the text says why.
    Parameter(&'static str),
    /// The arena is frozen and the request needs memory that is not committed.
    Frozen,
    /// Memory that was freed to the pool was written to since: it serves no more.
    Damaged,
}

impl Error {
    /// What the caller can do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Memory => "free memory in the system, or lower what the process locks and commits",
            Self::Limit => "free objects, or reserve a larger arena at Init",
            Self::CommitLimit => "free objects, or raise the arena's commit limit",
            Self::Resource => "raise the process's limits (address space, locked memory), or ask for less",
            Self::Parameter(_) => "correct the argument",
            Self::Frozen => {
                "before freezing, allocate the most that will be needed and free it (the high-water mark of a run \
                 without freezing tells how much), or thaw the arena"
            }
            Self::Damaged => "find who writes to what they freed, for instance with a debug pool",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self {
            Self::Memory => "the platform refused memory",
            Self::Limit => "the arena's address range is used up",
            Self::CommitLimit => "the arena's commit limit is reached",
            Self::Resource => "the platform refused a resource",
            Self::Parameter(why) => why,
            Self::Frozen => "the arena is frozen and may not grow",
            Self::Damaged => "free memory of the pool was written over",
        };
        write!(f, "{cause}: {}", self.advice())
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_error_says_what_to_do() {
        let all = [
            Error::Memory,
            Error::Limit,
            Error::CommitLimit,
            Error::Resource,
            Error::Parameter("the alignment is no power of two"),
            Error::Frozen,
            Error::Damaged,
        ];
        for error in all {
            let text = error.to_string();
            assert!(text.ends_with(error.advice()), "{text}");
            assert!(text.len() > error.advice().len() + 2, "{text}");
            assert!(!error.advice().is_empty(), "{error:?}");
            let same = all.into_iter().filter(|other| other.advice() == error.advice());
            assert_eq!(same.count(), 1, "{error:?} has advice of its own");
        }
    }
}
