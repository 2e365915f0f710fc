//! Rings of records in memory that other processes read
//! ([design/telemetry.md `.ring`](crate::design::telemetry)).

pub(crate) mod word_ring;
