//! The second storey: values that say something about memory, and how they are checked, described and refused.
//!
//! None of them uses a pool or an arena.
//!
//! | file | |
//! |---|---|
//! | `addr` | addresses and ranges of them, with sums that cannot wrap |
//! | `align` | alignments, with sums that cannot wrap |
//! | `check` | checking that a structure still obeys its rules |
//! | `control_groups` | the control groups that limit the memory of a process, by the texts in which Linux names them |
//! | `debug_as_text` | `Debug` of an error is its text |
//! | `describe` | writing a structure out for a person |
//! | `error` | why a request failed, and what to do next |
//! | `json` | JSON without an allocator, written as it goes |
//! | `node_set` | sets of memory nodes: which memory of a machine, by its distance from processors |
//! | `pool_id` | the number of a pool |
//! | `pool_options` | the options of a pool, as its event has them |
//! | `rank` | reference ranks |
//! | `segment` | segments: runs of tracts with a pool's state attached |
//! | `step_time` | how long a step of a collection took, and how long it was allowed to |

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
pub(crate) mod pool_options;
pub(crate) mod rank;
pub(crate) mod segment;
pub(crate) mod step_time;
