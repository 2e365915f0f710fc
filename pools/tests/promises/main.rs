//! What all classes promise, and what callers do that is odd or wrong.

#[path = "../common/mod.rs"]
mod common;
#[path = "../suite/mod.rs"]
mod suite;

mod client_code;
mod conformance;
mod debug;
mod describe;
mod edges;
mod freed;
mod front_ends;
mod narrowed;
mod reentry;
mod resize;
mod suite_finds_flaws;
mod unwinding;
