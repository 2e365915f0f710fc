//! Roots: where references come from, other than objects.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `spill` | the registers that a call preserves, by architecture |
//! | `stack` | the part of a thread's stack that is a root |
//! | `root` | the kinds of roots, and how each is scanned |

pub(crate) mod root;
pub(crate) mod spill;
pub(crate) mod stack;
