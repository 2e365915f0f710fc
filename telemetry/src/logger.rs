//! Reporting of every object, at allocation points and in stores, and the log that keeps it all.
//!
//! | file | |
//! |---|---|
//! | `point_logger` | the control that reports the calls on its point |
//! | `logged_store` | a store in front of another one, which reports its calls |
//! | `logged_pool` | a pool that reports its calls |
//! | `encoded` | an event as the words of a record |
//! | `point_log` | a log of all calls, whole and in order |
//! | `log_reader` | what reads it |

#[cfg(all(feature = "std", target_has_atomic = "64"))]
mod encoded;
#[cfg(all(feature = "reader", unix, target_has_atomic = "64"))]
pub(crate) mod log_reader;
pub(crate) mod logged_pool;
pub(crate) mod logged_store;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) mod point_log;
pub(crate) mod point_logger;
