//! What the measurements share: how to compare, random numbers, and a pool to measure with.
//!
//! Run them with `cargo bench -p benches`.

pub mod compare;
pub mod processor;
pub mod random;
pub mod region;
pub mod reported;
pub mod standing;
pub mod table;
pub mod workloads;
