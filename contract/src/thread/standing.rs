//! What a thread is to the contract: how much its events matter, and what it is held to.

/// How much a thread's events matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Mode {
    /// Events are counted.
    Counting,
    /// Events are counted and recorded with their site. They are no violations.
    Rehearsal,
    /// Events are violations.
    Armed,
}

/// As what a thread is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Bound by the contract.
    Hot,
    /// Held to a budget.
    Cold,
}

/// What a cold thread may do in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Events of all classes.
    pub events: usize,
    /// Bytes of all classes.
    pub bytes: usize,
    /// The length of the period, in ns.
    pub period: u64,
}
