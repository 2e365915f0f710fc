//! The macro that implements `Trace` for what `object_types!` declares is not for crates without `unsafe`.

#![forbid(unsafe_code)]

use tripoint_gc::Gc;

pub struct Item<'g>(Gc<'g, [u64]>);

// SAFETY: the block is empty.
tripoint_gc::__implement_trace!(unsafe {} Item ['g] [Gc<'g, [u64]>] [(; Gc<'g, [u64]>,) Self]);

fn main() {}
