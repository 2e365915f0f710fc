//! What collections free, keep and move, and when they begin.

#[path = "../common/mod.rs"]
mod common;
#[path = "../graph/mod.rs"]
mod graph;

mod cards;
mod collections;
mod events;
mod finalization;
mod formats;
mod frozen;
mod generations;
mod images;
mod large;
mod messages;
mod moving;
mod policy;
mod shadow;
mod stress;
mod transforms;
mod walks;
mod weak_tables;
