//! The buffer protocol: the words that threads share, and what each thread may do to
//! them. Nothing here knows a pool.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `calc` | the sums of the fast path |
//! | `buffer` | the words |
//! | `owner` | the owner's half: how it reads the words, and how it gets and loses memory |
//! | `trip` | how any thread takes control |
//! | `flip` | flip and commit, which race |
//! | `rearm` | how the owner answers trips and flips, between two objects |
//! | `snapshot` | how any thread reads the words together, and checks them |

pub(crate) mod buffer;
pub mod calc;
pub(crate) mod flip;
pub(crate) mod owner;
pub(crate) mod rearm;
pub(crate) mod snapshot;
pub(crate) mod trip;
