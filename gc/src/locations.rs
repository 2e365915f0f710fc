//! Location dependency: whether what was computed from addresses still holds.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `dependency` | a set of addresses, and since when it depends on them |
//! | `history` | where objects moved away from, in the last collections |

pub(crate) mod dependency;
pub(crate) mod history;
