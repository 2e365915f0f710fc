//! What an alarm does.

use core::fmt;

use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::name::Name;
use crate::words::record::Record;

/// What happens when a check finds violations of a class.
///
/// In every case the alarm is kept for a cold thread, and the events are counted.
/// Nothing allocates, locks or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Calls [`Policies::fail_fast`]. For tests and soaks.
    FailFast,
    /// Goes on; later violations raise the alarm again. For acceptance.
    Quarantine,
    /// Goes on; later violations of the class are counted and no more. For
    /// production.
    AlarmOnce,
}

/// A policy for every class.
///
/// ```
/// use tripoint_contract::{ViolationSet, Policies, Policy, ViolationClass};
///
/// let policies = Policies::all(Policy::AlarmOnce)
///     .with(ViolationSet::of(ViolationClass::MajorFault), Policy::FailFast)
///     .with_fail_fast(|alarm| eprintln!("{alarm:?}"));
/// assert_eq!(policies.of(ViolationClass::MajorFault), Policy::FailFast);
/// assert_eq!(policies.of(ViolationClass::Alloc), Policy::AlarmOnce);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    of: [Policy; ViolationClass::COUNT],
    /// What [`Policy::FailFast`] calls, on the violating thread, with the alarm.
    /// If it returns, the thread goes on as with [`Policy::Quarantine`].
    pub fail_fast: fn(&Record),
}

impl Policies {
    /// The same policy for every class.
    ///
    /// With `std`, FailFast writes one line to standard error and aborts the process. The line
    /// has class, count, bytes, thread, phase, and the command that turns the code addresses
    /// into source lines. Writing it allocates nothing and takes no lock. For names and lines
    /// use `Symbols::report_and_abort` instead. If the process leaves a core file, all alarms and
    /// records are in it: `gdb --batch -x contract/gdb/contract.py -ex tripoint-contract PROGRAM
    /// CORE` prints them. Without `std` FailFast does nothing until [`Policies::fail_fast`] is
    /// set.
    #[must_use]
    pub const fn all(policy: Policy) -> Self {
        Self { of: [policy; ViolationClass::COUNT], fail_fast: default_fail_fast }
    }

    /// These policies, with another one for some classes.
    #[must_use]
    pub fn with(mut self, classes: ViolationSet, policy: Policy) -> Self {
        for class in classes.classes() {
            self.of[class.index()] = policy;
        }
        self
    }

    /// These policies, with another function for [`Policy::FailFast`] to call.
    #[must_use]
    pub const fn with_fail_fast(mut self, fail_fast: fn(&Record)) -> Self {
        self.fail_fast = fail_fast;
        self
    }

    /// The policy of a class.
    #[must_use]
    pub const fn of(&self, class: ViolationClass) -> Policy {
        self.of[class.index()]
    }
}

impl Policies {
    /// The environment variable that [`Policies::from_environment`] reads.
    pub const VARIABLE: &'static str = "TRIPOINT_POLICY";

    /// Returns these policies, changed by `text`: a list, separated by commas, of a policy for
    /// every class, or `class=policy` for one class. Later parts override earlier ones.
    ///
    /// ```
    /// use tripoint_contract::{Policies, Policy, ViolationClass};
    ///
    /// let policies = Policies::all(Policy::AlarmOnce).with_text("quarantine,alloc=failfast")?;
    /// assert_eq!(policies.of(ViolationClass::Alloc), Policy::FailFast);
    /// assert_eq!(policies.of(ViolationClass::Growth), Policy::Quarantine);
    /// # Ok::<(), tripoint_contract::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError`] if a part is neither. Then no part is used.
    pub fn with_text(self, text: &str) -> Result<Self, PolicyError> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).try_fold(self, |policies, part| {
            let (classes, policy) = match part.split_once('=') {
                Some((class, policy)) => {
                    (ViolationClass::from_name(class.trim()).map(ViolationSet::of), policy)
                }
                None => (Some(ViolationSet::all()), part),
            };
            match (classes, Policy::from_name(policy.trim())) {
                (Some(classes), Some(policy)) => Ok(policies.with(classes, policy)),
                _ => Err(PolicyError { part: Name::new(part) }),
            }
        })
    }

    /// Returns these policies, changed by the text of [`Policies::VARIABLE`] as in
    /// [`Policies::with_text`]; unchanged if the variable is not set.
    ///
    /// ```
    /// use tripoint_contract::{HotThread, Policies, Policy};
    ///
    /// // AlarmOnce, unless TRIPOINT_POLICY=failfast, as in CI.
    /// let policies = Policies::all(Policy::AlarmOnce).from_environment()?;
    /// let thread = HotThread { policies, ..HotThread::new("parser") };
    /// # let _ = thread;
    /// # Ok::<(), tripoint_contract::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Policies::with_text`]; also a [`PolicyError`] if the variable is not valid text.
    #[cfg(feature = "std")]
    #[allow(clippy::wrong_self_convention, reason = "what the environment leaves open is `self`'s")]
    pub fn from_environment(self) -> Result<Self, PolicyError> {
        match std::env::var_os(Self::VARIABLE) {
            Some(text) => self.with_text(&text.to_string_lossy()),
            None => Ok(self),
        }
    }
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::FailFast, Self::Quarantine, Self::AlarmOnce];

    /// The name in [`Policies::with_text`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FailFast => "failfast",
            Self::Quarantine => "quarantine",
            Self::AlarmOnce => "alarmonce",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name))
    }
}

/// A part of a text that is not a policy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PolicyError {
    /// The part, or its beginning if it is long.
    pub part: Name,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a policy: write", self.part)?;
        Policy::ALL.iter().try_for_each(|policy| write!(f, " {}", policy.name()))?;
        f.write_str(", or class=policy, in ")?;
        write!(f, "{}, separated by commas; classes:", Policies::VARIABLE)?;
        ViolationClass::ALL.iter().try_for_each(|class| write!(f, " {class}"))
    }
}

tripoint_core::debug_as_text!(PolicyError);

impl core::error::Error for PolicyError {}

#[cfg(feature = "std")]
fn default_fail_fast(alarm: &Record) {
    crate::phases::last_words::say(alarm);
    std::process::abort();
}

#[cfg(not(feature = "std"))]
const fn default_fail_fast(_alarm: &Record) {}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn text_says_policies() {
        let policies = Policies::all(Policy::AlarmOnce);
        for (text, alloc, growth) in [
            ("", Policy::AlarmOnce, Policy::AlarmOnce),
            ("FailFast", Policy::FailFast, Policy::FailFast),
            (" quarantine , alloc = failfast,", Policy::FailFast, Policy::Quarantine),
            ("growth=quarantine", Policy::AlarmOnce, Policy::Quarantine),
            ("alloc=failfast,quarantine", Policy::Quarantine, Policy::Quarantine),
        ] {
            let read = policies.with_text(text).unwrap();
            assert_eq!(
                (read.of(ViolationClass::Alloc), read.of(ViolationClass::Growth)),
                (alloc, growth),
                "{text}"
            );
        }
    }

    #[test]
    fn other_text_is_refused_and_says_what_is_not() {
        for (text, part) in
            [("fastfail", "fastfail"), ("quarantine,heap=failfast", "heap=failfast"), ("alloc=", "alloc=")]
        {
            let error = Policies::all(Policy::FailFast).with_text(text).unwrap_err();
            assert_eq!(error.part, Name::new(part));
            let told = error.to_string();
            for expected in [part, "failfast quarantine alarmonce", "TRIPOINT_POLICY", "memory_call"] {
                assert!(told.contains(expected), "{told}");
            }
        }
    }
}
