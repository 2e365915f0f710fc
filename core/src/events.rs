//! The fourth storey: what slow paths report, and the hook that observes it.
//!
//! | file | |
//! |---|---|
//! | `event_table` | the table of all events, which declares them; design/telemetry.md `.kinds.add` says how to add one |
//! | `event` | what comes of it here: [`Event`](crate::Event); and the hook |
//! | `contract_words` | what a steady-state contract keeps in words of a hook |

pub(crate) mod contract_words;
pub(crate) mod event;
mod event_table;
