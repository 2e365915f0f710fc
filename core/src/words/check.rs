//! Checking that a structure still obeys its rules (MPS: design.mps.check).

use core::fmt;

/// How much a [`Check`] looks at. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckLevel {
    /// The signature only: a few instructions.
    Cheap,
    /// The structure's own fields: constant time.
    Shallow,
    /// Everything below it too: time in proportion to what it holds.
    Deep,
}

/// A rule that a structure was found to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// The type that was checked.
    pub structure: &'static str,
    /// The rule, as a statement that should have been true.
    pub rule: &'static str,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged; this should hold: {}", self.structure, self.rule)
    }
}

impl core::error::Error for CheckError {}

/// A structure that can tell whether it is whole.
///
/// A check changes nothing and may run at any time its receiver may be borrowed.
/// Links to owners are checked by signature only, links to what is owned are
/// followed, so that a deep check ends.
///
/// ```
/// use tripoint_core::{Check, CheckLevel, ClientArena, ClientArenaOptions};
///
/// let mut memory = Box::new_uninit_slice(64 << 10);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub trait Check {
    /// Checks the structure as far as `level` says.
    ///
    /// # Errors
    /// The first rule found broken.
    fn check(&self, level: CheckLevel) -> Result<(), CheckError>;
}

impl<A: Check + ?Sized> Check for &A {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        (**self).check(level)
    }
}

/// Turns a statement into a check: `Ok` where it holds.
#[inline]
pub const fn ensure(structure: &'static str, holds: bool, rule: &'static str) -> Result<(), CheckError> {
    if holds { Ok(()) } else { Err(CheckError { structure, rule }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_broken_rule_is_told_with_its_structure() {
        let error = ensure("Arena", false, "spare <= committed").unwrap_err();
        assert_eq!(error, CheckError { structure: "Arena", rule: "spare <= committed" });
        assert_eq!(error.to_string(), "Arena is damaged; this should hold: spare <= committed");
        assert_eq!(ensure("Arena", true, "spare <= committed"), Ok(()));
    }
}
