//! The way of a process from Init to Teardown, and what holds its threads to the contract.
//!
//! | file | |
//! |---|---|
//! | `policy` | what an alarm does |
//! | `route` | the ways that must be passed in a warm-up |
//! | `requests` | what the coordinator asks of all hot threads |
//! | `baseline` | what happened before, and is not held against a thread |
//! | `ledger` | amnesties: for which reasons, how many, and how many are allowed |
//! | `memory` | the memory that is frozen |
//! | `hot_thread` | options for a hot thread |
//! | `session` | what all threads of a contract share |
//! | `contract` | the lifecycle and the threads of a process |
//! | `guard` | a hot thread: one load and one compare per turn |
//! | `cold` | a cold thread |
//! | `last_words` | what `FailFast` prints before it ends the process |
//! | `warmup` | when a process is warm |
//! | `driver` | a warm-up that owns its loop |
//! | `run` | hot threads in a scope that ends |
//! | `scope` | a function that is steady, on whichever thread |

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
#[cfg(feature = "std")]
pub(crate) mod scope;
pub(crate) mod session;
pub(crate) mod warmup;
