//! Checking that a structure still obeys its rules (MPS: design.mps.check).

use core::fmt;

use crate::aver;

/// How much a [`Check`] examines. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckLevel {
    /// The signature only: a few instructions.
    Cheap,
    /// The structure's own fields: constant time.
    Shallow,
    /// Everything below the structure too: time in proportion to what it holds.
    Deep,
}

/// A rule that a structure was found to break.
#[derive(Clone, Copy, PartialEq, Eq)]
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

crate::debug_as_text!(CheckError);

impl core::error::Error for CheckError {}

/// A structure that can be checked for damage.
///
/// A check changes nothing, and may run whenever the structure may be borrowed.
/// Links to owners are checked by signature only. Links to what the structure owns are
/// followed. So a deep check ends.
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
    /// The first rule that is found broken.
    fn check(&self, level: CheckLevel) -> Result<(), CheckError>;
}

impl<A: Check + ?Sized> Check for &A {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        (**self).check(level)
    }
}

/// Turns a statement into a check: `Ok` if it holds.
///
/// # Errors
/// The rule and the structure, if it does not.
#[inline]
pub const fn ensure(structure: &'static str, holds: bool, rule: &'static str) -> Result<(), CheckError> {
    if holds { Ok(()) } else { Err(CheckError { structure, rule }) }
}

/// In a debug build, averts that a structure is damaged: the cheap check, for entry points. A
/// release build does nothing, and a model does not either, because every load is one more step
/// to explore (design/core.md `.aver`).
#[inline(always)]
pub fn aver_whole<T: Check + ?Sized>(structure: &T) {
    if cfg!(all(debug_assertions, not(any(tripoint_loom, tripoint_shuttle)))) {
        let found = structure.check(CheckLevel::Cheap);
        aver!(found.is_ok(), "{found:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_broken_rule_is_shown_with_its_structure() {
        let error = ensure("Arena", false, "spare <= committed").unwrap_err();
        assert_eq!(error, CheckError { structure: "Arena", rule: "spare <= committed" });
        assert_eq!(error.to_string(), "Arena is damaged; this should hold: spare <= committed");
        assert_eq!(ensure("Arena", true, "spare <= committed"), Ok(()));
    }

    struct Finished;

    impl Check for Finished {
        fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
            assert_eq!(level, CheckLevel::Cheap);
            ensure("Finished", false, "the signature is set")
        }
    }

    #[test]
    #[cfg_attr(
        all(debug_assertions, not(any(tripoint_loom, tripoint_shuttle))),
        should_panic = "the signature is set"
    )]
    fn damage_is_averted_in_debug_builds() {
        aver_whole(&Finished);
    }
}
