//! What can be done to a pool, and a naive model of what should come of it: one
//! vocabulary and one oracle for the conformance suite, the property tests of
//! allocation points and the fuzz targets (design/conformance.md `.oracle`,
//! `.operations`).
//!
//! ```text
//!     bytes ----> Menu ----> Operation ----> Run ----> pool, allocation points
//!                  |                          |
//!     proptest ----+                       Oracle, Live: where everything is,
//!                                          and what is in it
//! ```
//!
//! Everything here panics if a check fails: these are tests.

mod bytes;
mod caches;
mod choices;
mod deadline;
mod debugger;
mod effort;
mod forever;
mod joined;
mod listener;
mod live;
mod menu;
mod operation;
mod oracle;
mod packet_ways;
mod party;
mod points;
mod random;
mod run;
mod skipped;
mod subject;
#[cfg(all(unix, not(tripoint_loom)))]
mod telemetry_bytes;
mod telemetry_file;
mod test_pool;

pub use bytes::all_are;
pub use caches::{ClassFrontEnd, FrontEnd, ReturnFrontEnd, live_with_front_ends};
pub use choices::Choices;
pub use deadline::{DEADLINE, in_time, wait_until};
pub use debugger::core_by_debugger;
pub use effort::{cases, effort};
pub use forever::forever;
pub use joined::joined_tracts_know_their_base;
pub use listener::{Draws, Listener, Notice, Stopped};
pub use live::{Live, Object};
pub use menu::{CACHES, Draw, Layouts, MANUAL, Menu, POINTS, STACKS};
pub use operation::{Between, Operation};
pub use oracle::Oracle;
pub use packet_ways::walk_packets;
pub use party::{Member, Party};
pub use points::operate_points;
pub use random::Random;
pub use run::{Run, Scrutiny, Slack, live_in_frames, live_manually};
pub use skipped::{note_skip, pass_skips_on};
#[cfg(all(unix, not(tripoint_loom)))]
pub use telemetry_bytes::telemetry_bytes;
pub use telemetry_file::{NaiveEvent, NaiveFile, NaiveRing};
pub use test_pool::{ALIGN_MAX, BumpPool, FlipPool, Flippable, Form, MIN_ALIGN, Manual, SIZE_MAX, TestPool};
