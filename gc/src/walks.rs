//! Walks at a stop: all objects, all roots, and what keeps an object.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `objects` | all objects, and the one at an address |
//! | `segments` | a picture of the heap: its segments, and how their memory is used |
//! | `roots` | the references in all roots, and what refers to an object |
//! | `census` | objects and bytes by type |
//! | `path` | a shortest path from a root to an object |

pub(crate) mod census;
pub(crate) mod objects;
pub(crate) mod path;
pub(crate) mod roots;
pub(crate) mod segments;
