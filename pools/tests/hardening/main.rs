//! What becomes of damaged and of freed memory, with and without the features that watch for it.

#[path = "../common/mod.rs"]
mod common;

#[cfg(feature = "hardening")]
mod damaged;
#[cfg(feature = "hardening")]
mod lists;
mod poison;
mod promised;
