//! Where and why a line is malformed, as plain words: the hot thread finds it, and
//! must not allocate (design/order-book.md `.failure.value`).

use core::fmt;

use crate::decimal::DecimalError;

/// Where and why a line is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The number of bytes in front of the place.
    pub at: usize,
    pub cause: Cause,
}

/// Why a line is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This is wrong here.
    Wrong(&'static str),
    /// This was expected here.
    Expected(&'static str),
    /// A field that the record needs is missing, or has another form.
    Missing(&'static str),
    /// A field that may occur once occurs twice.
    Repeated(&'static str),
    /// A price or a quantity is wrong.
    Decimal(DecimalError),
    /// The caller had no room for a level.
    NoRoom,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed record: {} (column {})", self.cause, self.at + 1)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(what) => f.write_str(what),
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::Missing(what) => write!(f, "missing {what}"),
            Self::Repeated(key) => write!(f, "repeated field `{key}`"),
            Self::Decimal(error) => write!(f, "{error}"),
            Self::NoRoom => f.write_str("more levels than there is room for"),
        }
    }
}
