//! The slow path of an allocation point: what happens when the fast path gives way.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `objects` | what a form of reserve knows of its objects |
//! | `call` | a call, until it returns or unwinds |
//! | `stops` | how far the next stop is |
//! | `descriptor` | the descriptor, which the shared part begins and the slow part ends |
//! | `walk` | visiting and flipping every buffer of a pool |
//! | `operations` | what collectors do to a buffer that they know only by its node |
//! | `slow_path` | what the slow part keeps: attaching, detaching, counting, reporting |
//! | `fill` | the cold halves of reserve and commit |

pub(crate) mod call;
pub(crate) mod descriptor;
pub(crate) mod fill;
pub(crate) mod objects;
pub(crate) mod operations;
pub(crate) mod slow_path;
pub(crate) mod stops;
pub(crate) mod walk;
