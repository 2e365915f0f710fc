//! Rings of records in memory that other processes read
//! ([design/telemetry.md `.ring`](crate::design::telemetry)).
//!
//! | file | |
//! |---|---|
//! | `word_ring` | words: one thread writes, any number of readers copy |
//! | `record_ring` | records, laid out in blocks |
//! | `thread_rings` | the two rings of a thread |
//! | `own_ring` | the rings of one thread, as the thread has them at hand |
//! | `claim` | which thread has a ring |
//! | `gate` | whether a thread is in the middle of a record |
//! | `copy` | the reader's side |

#[cfg(target_has_atomic = "64")]
mod claim;
pub(crate) mod copy;
#[cfg(target_has_atomic = "64")]
pub(crate) mod gate;
#[cfg(all(target_has_atomic = "64", feature = "std", not(tripoint_loom)))]
pub(crate) mod own_ring;
#[cfg(target_has_atomic = "64")]
pub(crate) mod record_ring;
#[cfg(all(target_has_atomic = "64", not(tripoint_loom)))]
pub(crate) mod thread_rings;
#[cfg(target_has_atomic = "64")]
pub(crate) mod word_ring;
