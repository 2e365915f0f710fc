//! The variants of a type that are traced are all of them, whatever the macro is passed.

use tripoint_gc::Gc;

pub enum Either<'g> {
    Left(u64),
    Right(Gc<'g, u64>),
}

// SAFETY: the block is empty.
tripoint_gc::__implement_trace!(unsafe {} Either ['g] [u64] [(; u64,) Self::Left]);

fn main() {}
