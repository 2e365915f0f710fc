//! The fourth storey: what slow paths report, and the hook that observes it.

pub(crate) mod event;
mod event_table;
