//! The pool classes: objects are marked where they are, or copied, and what is left is swept.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `runs` | free runs by size |
//! | `copies` | where objects are copied to |
//! | `pool_generation`, `state` | what changes under the lock of a pool |
//! | `pool` | segments, and how buffers get and return memory |
//! | `stress` | fills and freed memory while the heap is under stress |
//! | `picture` | how the memory of each segment is used |
//! | `moves` | how objects move |
//! | `scans` | how objects are scanned, and their cards noted; the loop over copies |
//! | `watched` | which objects were written, as the platform knows it |
//! | `older` | what older objects refer to, by their cards: the loop over cards |
//! | `reclaim` | what becomes of a segment |
//! | `steps` | collections in steps: what mutators wrote meanwhile, and what waits to be swept |
//! | `sweep` | what a collection does to a pool: flip, condemn, the loop over grey objects, walks, the sweep |
//! | `class` | the classes: `Ams`, `Lo` and `Awl`, `Amc` and `Amcz` |
//! | `writes` | the writes of mutators, for the program |

pub(crate) mod class;
pub(crate) mod copies;
pub(crate) mod moves;
pub(crate) mod older;
pub(crate) mod picture;
pub(crate) mod pool;
pub(crate) mod pool_generation;
pub(crate) mod reclaim;
pub(crate) mod runs;
pub(crate) mod scans;
pub(crate) mod state;
pub(crate) mod steps;
pub(crate) mod stress;
pub(crate) mod sweep;
pub(crate) mod watched;
pub(crate) mod writes;
