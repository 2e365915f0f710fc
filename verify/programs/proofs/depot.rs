//! The bytes that a depot counts while caches exchange batches through it: any number of threads, batches and classes, and any bound.
//!
//! A stack of batches is changed under its lock; the bytes that the depot keeps are counted beside it, by
//! read-modify-writes. So x86's memory shows no other order than sequential consistency does.

use vstd::prelude::*;

verus! {

pub struct State {
    pub kept: int,
    pub bound: int,
    // The bytes of all batches that are counted in and not pushed yet, that are on a stack, and that are taken and not counted
    // out yet. A batch that a step is about is one of them: so its bytes are no more than theirs.
    pub coming: int,
    pub stacked: int,
    pub going: int,
}

impl State {
    spec fn holds(self) -> bool {
        &&& 0 <= self.coming
        &&& 0 <= self.stacked
        &&& 0 <= self.going
        // Less, once a stack was lost.
        &&& self.coming + self.stacked + self.going <= self.kept
        &&& self.kept <= self.bound
    }
}

proof fn begins(bound: int) -> (t: State)
    requires 0 <= bound,
    ensures t.holds(),
{
    State { kept: 0, bound, coming: 0, stacked: 0, going: 0 }
}

/// A batch is counted in by an exchange that finds the sum as it was.
proof fn admit(s: State, size: int) -> (t: State)
    requires
        s.holds(),
        0 <= size,
        s.kept + size <= s.bound,
    ensures t.holds(),
{
    State { kept: s.kept + size, coming: s.coming + size, ..s }
}

/// A batch that was counted in turns out to be damaged.
proof fn withdraw_admitted(s: State, size: int) -> (t: State)
    requires
        s.holds(),
        0 <= size <= s.coming,
    ensures t.holds(),
{
    State { kept: s.kept - size, coming: s.coming - size, ..s }
}

proof fn push(s: State, size: int) -> (t: State)
    requires
        s.holds(),
        0 <= size <= s.coming,
    ensures t.holds(),
{
    State { coming: s.coming - size, stacked: s.stacked + size, ..s }
}

proof fn take(s: State, size: int) -> (t: State)
    requires
        s.holds(),
        0 <= size <= s.stacked,
    ensures t.holds(),
{
    // The stacks have no more than the depot may keep.
    assert(s.stacked <= s.bound);
    State { stacked: s.stacked - size, going: s.going + size, ..s }
}

/// A stack that is damaged is lost, with the bytes that are counted.
proof fn lose(s: State, size: int) -> (t: State)
    requires
        s.holds(),
        0 <= size <= s.stacked,
    ensures t.holds(),
{
    State { stacked: s.stacked - size, ..s }
}

proof fn withdraw(s: State, size: int) -> (t: State)
    requires
        s.holds(),
        0 <= size <= s.going,
    ensures t.holds(),
{
    // The subtraction does not wrap.
    assert(size <= s.kept);
    State { kept: s.kept - size, going: s.going - size, ..s }
}

} // verus!

fn main() {}
