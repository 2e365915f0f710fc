//! The library that `tripoint record` preloads: the functions of the malloc family, each of which calls the next
//! library's and records the call (design/cli-traces.md `.preload`).
//!
//! `cli/build.rs` compiles this folder, without dependencies.

#![allow(unsafe_op_in_unsafe_fn)]
#![deny(warnings)]

mod before;
mod functions;
mod inside;
mod operators;
mod record;
#[allow(dead_code)]
mod ring;
mod system;
