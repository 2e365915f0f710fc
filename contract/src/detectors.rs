//! What sees the events of a thread on every system, and what this target has of its own.
//!
//! | file | |
//! |---|---|
//! | `allocator` | calls of the global allocator, and samples of its allocations |
//! | `pool_events` | what arenas report, charged to the thread on which it happens |
//! | `platform` | what this target has of its own |

#[cfg(feature = "std")]
pub(crate) mod allocator;
pub(crate) mod platform;
#[cfg(feature = "std")]
pub(crate) mod pool_events;
