//! Pools: their objects are marked where they are, or copied, and what is left is swept.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `runs` | free runs by size |
//! | `copies` | where objects are copied to |
//! | `pool` | segments, and how buffers get and return memory |
//! | `moves` | how objects move |
//! | `sweep` | what a collection does to a pool |
//! | `class` | the classes: `Ams`, `Lo` and `Awl`, `Amc` and `Amcz` |

pub(crate) mod class;
pub(crate) mod copies;
pub(crate) mod moves;
pub(crate) mod pool;
pub(crate) mod runs;
pub(crate) mod sweep;
