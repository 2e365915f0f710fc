//! Collections, the roots that they begin with, and when a heap begins one by itself.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `registering` | registering roots |
//! | `finalization` | finalization and messages, for the program |
//! | `ending` | the end of a collection in steps |
//! | `flip` | what collections and walks begin with |
//! | `collection` | one collection, from the stop to the sweep |
//! | `pace` | how a step knows whether to go on |
//! | `steps` | full collections in steps |
//! | `dependencies` | location dependencies, for the program |
//! | `pressure` | collections in a fill |
//! | `stress` | a heap that collects at every moment, for tests |

pub(crate) mod collection;
pub(crate) mod dependencies;
pub(crate) mod ending;
pub(crate) mod finalization;
pub(crate) mod flip;
pub(crate) mod pace;
pub(crate) mod pressure;
pub(crate) mod registering;
pub(crate) mod steps;
pub(crate) mod stress;
