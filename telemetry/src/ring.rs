//! Rings of records in memory that other processes read
//! ([design/telemetry.md `.ring`](crate::design::telemetry)).

#[cfg(not(tripoint_loom))]
pub(crate) mod record_ring;
pub(crate) mod word_ring;
