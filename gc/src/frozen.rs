//! Frozen segments: memory with objects that collections never look at.
//!
//! | file | |
//! |---|---|
//! | `segment` | registering, updating and unregistering one |
//! | `fault` | what a check of its objects finds |

pub(crate) mod fault;
pub(crate) mod segment;
