//! The amnesties of a session: for which reasons, how many, and how many are allowed.

use core::fmt;

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::words::atomics::{const_fn, zeros};

/// The most reasons an [`AmnestyReason`] may have.
pub const REASONS_MAX: usize = 32;

/// Why code may do what the contract forbids: an enum that the program defines.
///
/// ```
/// use tripoint_contract::AmnestyReason;
///
/// #[derive(Clone, Copy, Debug)]
/// enum Reason {
///     Disconnect,
///     Rollover,
/// }
///
/// impl AmnestyReason for Reason {
///     const NAMES: &'static [&'static str] = &["disconnect", "rollover"];
///
///     fn index(self) -> usize {
///         self as usize
///     }
/// }
/// ```
///
/// More reasons do not compile:
/// ```compile_fail,E0080
/// use tripoint_contract::REASONS_MAX;
/// use tripoint_contract::{AmnestyReason, Contract};
///
/// #[derive(Clone, Copy, Debug)]
/// struct Reason(usize);
///
/// impl AmnestyReason for Reason {
///     const NAMES: &'static [&'static str] = &["again"; REASONS_MAX + 1];
///
///     fn index(self) -> usize {
///         self.0
///     }
/// }
///
/// static CONTRACT: Contract<Reason> = Contract::new();
/// assert!(!CONTRACT.is_armed());
/// ```
pub trait AmnestyReason: Copy + fmt::Debug + 'static {
    /// The name of each reason, in the order of their indices; at most
    /// [`REASONS_MAX`].
    const NAMES: &'static [&'static str];

    /// The place of the reason in [`AmnestyReason::NAMES`].
    fn index(self) -> usize;
}

/// No reason: for a program without amnesties.
#[derive(Clone, Copy, Debug)]
pub enum NoReason {}

impl AmnestyReason for NoReason {
    const NAMES: &'static [&'static str] = &[];

    fn index(self) -> usize {
        match self {}
    }
}

/// The amnesties of a session by reason: how many there were, and how many are allowed.
#[derive(Debug)]
pub struct Ledger {
    entered: [AtomicUsize; REASONS_MAX],
    /// What is added to [`AMNESTY_BUDGET`], so that a ledger of zeros is valid.
    budgets: [AtomicUsize; REASONS_MAX],
}

/// The default number of amnesties that a session may have for each reason.
pub const AMNESTY_BUDGET: usize = 10;

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    const_fn! {
        /// An empty ledger with a budget of [`AMNESTY_BUDGET`] for each reason.
        #[must_use]
        pub fn new() -> Self {
            Self { entered: zeros(), budgets: zeros() }
        }
    }

    pub(crate) fn set_budget(&self, reason: usize, budget: usize) {
        if let Some(more) = self.budgets.get(reason) {
            more.store(budget.wrapping_sub(AMNESTY_BUDGET), Ordering::Relaxed);
        }
    }

    /// Records an amnesty. Returns false if it exceeds its reason's budget, or if its reason
    /// has no place here.
    pub(crate) fn enter(&self, reason: usize) -> bool {
        let entered = self.entered.get(reason);
        entered.is_some_and(|count| count.fetch_add(1, Ordering::Relaxed) < self.budget_of(reason))
    }

    /// Number of amnesties so far, for all reasons.
    #[must_use]
    pub fn entered(&self) -> usize {
        (0..REASONS_MAX).map(|index| self.of_reason(index)).sum()
    }

    /// Number of amnesties that exceeded the budget of their reason.
    #[must_use]
    pub fn over_budget(&self) -> usize {
        (0..REASONS_MAX).map(|index| self.of_reason(index).saturating_sub(self.budget_of(index))).sum()
    }

    /// Number of amnesties for the reason with this index.
    #[must_use]
    pub fn of_reason(&self, index: usize) -> usize {
        self.entered.get(index).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// How many amnesties for the reason with this index raise no alarm.
    #[must_use]
    pub fn budget_of(&self, index: usize) -> usize {
        let more = self.budgets.get(index).map_or(0, |more| more.load(Ordering::Relaxed));
        AMNESTY_BUDGET.wrapping_add(more)
    }
}
