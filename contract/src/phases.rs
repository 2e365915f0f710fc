//! The way of a process from Init to Teardown, and what holds its threads to the contract.

pub(crate) mod baseline;
pub(crate) mod cold;
pub(crate) mod contract;
#[cfg(feature = "std")]
pub(crate) mod driver;
pub(crate) mod guard;
pub(crate) mod hot_thread;
#[cfg(feature = "std")]
pub(crate) mod last_words;
pub(crate) mod ledger;
pub(crate) mod memory;
pub(crate) mod policy;
mod requests;
pub(crate) mod route;
#[cfg(feature = "std")]
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod warmup;
