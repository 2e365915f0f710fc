//! The form of a summary.

use core::fmt;

/// A line of the summary.
pub fn line(f: &mut fmt::Formatter<'_>, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "{name:<24}{value}")
}
