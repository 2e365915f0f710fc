//! What an alarm does.

use crate::class::{ClassSet, ViolationClass};
use crate::record::Record;

/// What happens when a check finds violations of a class.
///
/// In every case a record goes into the thread's ring, and the events are
/// counted. Nothing allocates, locks or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Calls [`Policies::fail_fast`]. For tests and soaks.
    FailFast,
    /// Goes on; later violations raise the alarm anew. For acceptance.
    Quarantine,
    /// Goes on; later violations of the class are counted and no more. For
    /// production.
    AlarmOnce,
}

/// A policy for every class.
///
/// ```
/// use tripoint_contract::{ClassSet, Policies, Policy, ViolationClass};
///
/// let policies = Policies::all(Policy::AlarmOnce)
///     .with(ClassSet::of(ViolationClass::MajorFault), Policy::FailFast)
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
    /// With `std` FailFast aborts the process; without, it does nothing until
    /// [`Policies::fail_fast`] is set.
    #[must_use]
    pub const fn all(policy: Policy) -> Self {
        Self { of: [policy; ViolationClass::COUNT], fail_fast: default_fail_fast }
    }

    /// These policies, with another one for some classes.
    #[must_use]
    pub fn with(mut self, classes: ClassSet, policy: Policy) -> Self {
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

#[cfg(feature = "std")]
fn default_fail_fast(_alarm: &Record) {
    std::process::abort();
}

#[cfg(not(feature = "std"))]
const fn default_fail_fast(_alarm: &Record) {}
