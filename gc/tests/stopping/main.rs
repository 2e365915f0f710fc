//! Heaps that are stopped: for steps, by several threads, with stacks as roots, and in the middle of something.

#[path = "../common/mod.rs"]
mod common;
#[path = "../items/mod.rs"]
mod items;

mod half_done;
mod own_stop;
mod stacks;
mod steps;
mod steps_within;
mod steps_writes;
mod stops;
mod ten_threads;
