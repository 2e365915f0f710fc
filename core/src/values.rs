//! The second storey: values that say something about memory, and how they are checked, described and refused.
//!
//! None of them knows a pool or an arena.

pub(crate) mod addr;
pub(crate) mod align;
pub(crate) mod check;
pub(crate) mod control_groups;
mod debug_as_text;
pub(crate) mod describe;
pub(crate) mod error;
pub(crate) mod json;
pub(crate) mod node_set;
pub(crate) mod pool_id;
pub(crate) mod rank;
pub(crate) mod segment;
pub(crate) mod step_time;
