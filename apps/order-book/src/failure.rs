//! What went wrong in a run, each in one line.

use core::fmt;

use crate::hot_failure::HotFailure;

/// What went wrong, and in which line of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    line: Option<u64>,
    cause: String,
}

impl Failure {
    /// A failure that no line of the input is to blame for.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self { line: None, cause: cause.to_string() }
    }

    /// A failure at a line of the input, counted from one.
    pub fn at_line(line: u64, cause: impl fmt::Display) -> Self {
        Self { line: Some(line), cause: cause.to_string() }
    }

    /// The line of the input.
    pub const fn line(&self) -> Option<u64> {
        self.line
    }

    /// The same, at another line.
    pub fn with_line(&self, line: Option<u64>) -> Self {
        Self { line, ..self.clone() }
    }

    /// The same, of an input of this name.
    pub fn of_input(&self, name: &str) -> Self {
        Self::new(format_args!("{name}: {self}"))
    }
}

impl From<HotFailure> for Failure {
    fn from(failure: HotFailure) -> Self {
        Self { line: failure.line, cause: failure.cause.to_string() }
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
