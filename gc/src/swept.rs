//! Pools whose objects are marked and swept, and do not move.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `runs` | free runs by size |
//! | `pool` | segments, and how buffers get and return memory |
//! | `sweep` | what a collection does to a pool |
//! | `class` | the classes: `Ams` and `Lo` |

pub(crate) mod class;
pub(crate) mod pool;
pub(crate) mod runs;
pub(crate) mod sweep;
