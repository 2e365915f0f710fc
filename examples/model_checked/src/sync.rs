//! The one place from which this crate takes atomics, so that loom can replace them.

#[cfg(not(tripoint_loom))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
#[cfg(tripoint_loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
