//! When a heap collects by itself, and what is known of a collection afterwards.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `progress` | how far a collection in steps is |
//! | `tally` | what a collection found in a pool |
//! | `report` | why a collection began, and what it did |
//! | `due` | which generations are due, for the program |
//! | `accounts` | what was allocated since the last one, and when the next is due |

pub(crate) mod accounts;
pub(crate) mod due;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod tally;
