//! The fields of a type that are traced are all of them, whatever the macro is passed.

use tripoint_gc::Gc;

pub struct Item<'g>(u64, Gc<'g, u64>);

// SAFETY: the block is empty.
tripoint_gc::__implement_trace!(unsafe {} Item ['g] [u64] [(; u64,) Self]);

fn main() {}
