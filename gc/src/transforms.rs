//! Transforms: how objects take the place of others, in all references to them.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `not_applied` | why a transform was not applied |
//! | `replacement` | what a transform looks at, and what it replaces |
//! | `transform` | a transform, for the program |

pub(crate) mod not_applied;
pub(crate) mod replacement;
pub(crate) mod transform;
