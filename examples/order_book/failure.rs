//! Why a run ended early, in one line.

use core::fmt;

use tripoint::base::Error;

/// What went wrong, and in which line of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    line: Option<u64>,
    cause: String,
}

impl Failure {
    /// A failure that no line of the input is to blame for.
    pub(crate) fn new(cause: impl fmt::Display) -> Self {
        Self { line: None, cause: cause.to_string() }
    }

    /// A failure at a line of the input, counted from one.
    pub(crate) fn at_line(line: u64, cause: impl fmt::Display) -> Self {
        Self { line: Some(line), cause: cause.to_string() }
    }

    /// No pool had memory for a level.
    pub(crate) fn no_level(error: Error) -> Self {
        Self::new(format_args!("no memory for a level: {error} (see --levels)"))
    }

    /// No pool had memory for the entries of a record.
    pub(crate) fn no_scratch(error: Error) -> Self {
        Self::new(format_args!("no memory for the entries of a record: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.cause),
            None => f.write_str(&self.cause),
        }
    }
}
