//! Collections, the roots that they begin with, and when a heap begins one by itself.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `roots` | registering roots |
//! | `collection` | one collection, from the stop to the sweep |
//! | `dependencies` | location dependencies, for the program |
//! | `finalization` | finalization and messages, for the program |
//! | `pressure` | collections in a fill |

pub(crate) mod collection;
pub(crate) mod dependencies;
pub(crate) mod finalization;
pub(crate) mod pressure;
pub(crate) mod roots;
