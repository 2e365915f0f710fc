//! The third storey: words that threads share without a lock, and how they are counted, listed and recognised.
//!
//! None of them knows a pool or an arena.

pub(crate) mod counters;
pub(crate) mod fork_gate;
pub(crate) mod once;
pub(crate) mod registry;
pub(crate) mod signature;
pub(crate) mod trips;
