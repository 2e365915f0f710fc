//! What an allocation point does: its states, its stops, its frames, and what it may be asked for.

#[path = "../common/mod.rs"]
mod common;

mod descriptors;
mod diagrams;
mod frames;
mod hooks;
mod layouts;
mod owner;
mod properties;
mod states;
mod stops;
mod typed;
