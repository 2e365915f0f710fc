//! What a program may do wrong, or run out of.

use core::fmt;

use tripoint::Error;

/// Why an expression has no value.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The heap has no memory left, and may not grow.
    Memory(Error),
    /// The stack is full.
    TooDeep,
    /// An object would have more bytes than there are addresses.
    TooLarge,
    /// What the program did wrong.
    Wrong(String),
    /// What the program says is wrong.
    Raised(String),
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn wrong(text: impl fmt::Display) -> Self {
        Self::Wrong(text.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => write!(f, "out of memory: {error}"),
            Self::TooDeep => f.write_str("nested too deep: the stack is full"),
            Self::TooLarge => f.write_str("an object would be too large"),
            Self::Wrong(text) | Self::Raised(text) => f.write_str(text),
        }
    }
}
