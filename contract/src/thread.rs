//! What is known of one thread: its slot, and how the thread finds it.

pub(crate) mod account;
pub(crate) mod alarm;
pub(crate) mod attendance;
pub(crate) mod call_site;
#[cfg(feature = "std")]
pub(crate) mod current;
pub(crate) mod detectors;
pub(crate) mod errands;
pub(crate) mod everywhere;
pub(crate) mod heap_tally;
#[cfg(not(tripoint_loom))]
pub(crate) mod layout;
pub(crate) mod observation;
pub(crate) mod observer;
pub(crate) mod records;
pub(crate) mod ring;
pub(crate) mod slot;
pub(crate) mod standing;
pub(crate) mod tally;
pub(crate) mod versioned;
