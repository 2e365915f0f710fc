//! The third storey: words that threads share without a lock, and how they are counted, listed and recognised.
//!
//! None of them uses a pool or an arena.
//!
//! | file | |
//! |---|---|
//! | `counters` | byte counters of fills and empties |
//! | `fork_gate` | a gate that threads pass before they wait for a lock, and that a fork closes |
//! | `once` | a value that is made once, by the thread that asks first |
//! | `owner_slot` | the word by which others learn that a thread does not use what it owns |
//! | `registry` | the descriptors of a pool's buffers: a list that only grows |
//! | `signature` | signatures: words that distinguish a live structure from a dead or foreign one |
//! | `trips` | trips: how any thread takes control of an owner that compares with a limit |

pub(crate) mod counters;
pub(crate) mod fork_gate;
pub(crate) mod once;
pub(crate) mod owner_slot;
pub(crate) mod registry;
pub(crate) mod signature;
pub(crate) mod trips;
