//! Rings of records in memory that other processes read
//! ([design/telemetry.md `.ring`](crate::design::telemetry)).

#[cfg(target_has_atomic = "64")]
mod claim;
pub(crate) mod copy;
#[cfg(target_has_atomic = "64")]
pub(crate) mod gate;
#[cfg(all(target_has_atomic = "64", feature = "std", not(tripoint_loom)))]
pub(crate) mod own_ring;
#[cfg(target_has_atomic = "64")]
pub(crate) mod record_ring;
#[cfg(target_has_atomic = "64")]
pub(crate) mod word_ring;
