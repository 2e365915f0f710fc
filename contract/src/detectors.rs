//! What sees the events of a thread on every system, and what this target has of its own.

#[cfg(feature = "std")]
pub(crate) mod allocator;
pub(crate) mod platform;
#[cfg(feature = "std")]
pub(crate) mod pool_events;
