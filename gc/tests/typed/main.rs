//! Typed objects (design/gc-typed.md).

#[path = "../common/mod.rs"]
mod common;
#[path = "../items/mod.rs"]
mod items;

mod dropped;
mod final_queues;
mod handles;
mod objects;
mod replaced;
mod shadow;
mod threads;
mod weak;
