//! The second storey: values that say something about memory, and words that threads share.
//!
//! None of them knows a pool or an arena.

pub(crate) mod addr;
pub(crate) mod align;
pub(crate) mod check;
pub(crate) mod control_groups;
pub(crate) mod counters;
mod debug_as_text;
pub(crate) mod describe;
pub(crate) mod error;
pub(crate) mod event;
mod event_table;
pub(crate) mod fork_gate;
pub(crate) mod json;
pub(crate) mod node_set;
pub(crate) mod once;
pub(crate) mod pool_id;
pub(crate) mod rank;
pub(crate) mod registry;
pub(crate) mod segment;
pub(crate) mod signature;
pub(crate) mod step_time;
pub(crate) mod trips;
