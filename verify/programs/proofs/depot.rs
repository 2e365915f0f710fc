//! Batches that caches exchange through a depot, and the bytes that it counts: any number of threads, batches and classes, and
//! any bound.
//!
//! A stack of batches is changed under its lock; the bytes that the depot keeps are counted beside it, by
//! read-modify-writes. So x86's memory shows no other order than sequential consistency does.

use vstd::prelude::*;

verus! {

pub struct Batch {
    pub class: int,
    pub size: int,
    /// How many threads have it.
    pub holders: int,
    /// The place on the stack of its class that it was pushed to last.
    pub place: int,
    /// It was on a stack that was damaged.
    pub is_lost: bool,
}

pub struct State {
    pub kept: int,
    pub bound: int,
    /// The batches of each class, the one pushed last at the end.
    pub stacks: Map<int, Seq<int>>,
    // What is said of them.
    pub batches: Map<int, Batch>,
    // The bytes of all batches that are counted in and not pushed yet, that are on a stack, and that are taken and not counted
    // out yet. A batch that a step is about is one of them: so its bytes are no more than theirs.
    pub coming: int,
    pub stacked: int,
    pub going: int,
}

impl State {
    spec fn has(self, batch: int) -> bool {
        self.batches.dom().contains(batch)
    }

    spec fn is_stacked(self, batch: int) -> bool {
        let it = self.batches[batch];
        0 <= it.place < self.stacks[it.class].len() && self.stacks[it.class][it.place] == batch
    }

    spec fn theorems(self) -> bool {
        // D1: the depot keeps no more than its bound, and no more is on its stacks.
        &&& 0 <= self.stacked <= self.kept <= self.bound
        // D2: no batch is lost: a thread has it, or it is on the stack of its class.
        &&& forall|batch: int| #[trigger] self.has(batch) ==> self.batches[batch].is_lost || self.batches[batch].holders == 1
            || self.is_stacked(batch)
        // D2: no batch is twice: with two threads, with a thread and on a stack, or on a stack twice.
        &&& forall|batch: int| #[trigger] self.has(batch) ==> 0 <= self.batches[batch].holders <= 1
        &&& forall|class: int, place: int| #[trigger] self.stacks.dom().contains(class) && 0 <= place < self.stacks[class].len() ==> {
            let batch = #[trigger] self.stacks[class][place];
            self.has(batch) && self.batches[batch].holders == 0 && self.batches[batch].class == class
                && self.batches[batch].place == place && !self.batches[batch].is_lost
        }
    }

    spec fn holds(self) -> bool {
        &&& self.theorems()
        &&& 0 <= self.coming
        &&& 0 <= self.going
        // Less, once a stack was lost.
        &&& self.coming + self.stacked + self.going <= self.kept
        &&& forall|batch: int| #[trigger] self.has(batch) ==> self.stacks.dom().contains(self.batches[batch].class)
        &&& forall|batch: int| #[trigger] self.has(batch) && self.batches[batch].is_lost ==> self.batches[batch].holders == 0
    }

    spec fn with(self, batch: int, it: Batch) -> State {
        State { batches: self.batches.insert(batch, it), ..self }
    }
}

proof fn begins(bound: int, classes: Set<int>) -> (t: State)
    requires 0 <= bound,
    ensures t.holds(),
{
    State {
        kept: 0,
        bound,
        stacks: classes.mk_map(|class: int| Seq::empty()),
        batches: Map::empty(),
        coming: 0,
        stacked: 0,
        going: 0,
    }
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

/// A cache cuts a batch off the blocks of a class, which are its own.
proof fn cut(s: State, batch: int, class: int, size: int) -> (t: State)
    requires
        s.holds(),
        !s.has(batch),
        s.stacks.dom().contains(class),
        0 <= size,
    ensures t.holds(),
{
    s.with(batch, Batch { class, size, holders: 1, place: 0, is_lost: false })
}

/// Under the lock of the stack.
proof fn push(s: State, batch: int) -> (t: State)
    requires
        s.holds(),
        s.has(batch),
        s.batches[batch].holders >= 1,
        s.batches[batch].size <= s.coming,
        0 <= s.batches[batch].size,
    ensures t.holds(),
{
    let it = s.batches[batch];
    let stack = s.stacks[it.class];
    let pushed = s.with(batch, Batch { holders: it.holders - 1, place: stack.len() as int, ..it });
    State {
        stacks: s.stacks.insert(it.class, stack.push(batch)),
        coming: s.coming - it.size,
        stacked: s.stacked + it.size,
        ..pushed
    }
}

/// Under the lock of the stack.
proof fn take(s: State, class: int) -> (t: State)
    requires
        s.holds(),
        s.stacks.dom().contains(class),
        s.stacks[class].len() > 0,
        0 <= s.batches[s.stacks[class].last()].size <= s.stacked,
    ensures t.holds(),
{
    let stack = s.stacks[class];
    let batch = stack.last();
    let it = s.batches[batch];
    let taken = s.with(batch, Batch { holders: it.holders + 1, ..it });
    State {
        stacks: s.stacks.insert(class, stack.subrange(0, stack.len() - 1)),
        stacked: s.stacked - it.size,
        going: s.going + it.size,
        ..taken
    }
}

/// A stack that is damaged is lost, with the bytes that are counted.
proof fn lose(s: State, class: int, size: int) -> (t: State)
    requires
        s.holds(),
        s.stacks.dom().contains(class),
        0 <= size <= s.stacked,
    ensures t.holds(),
{
    let batches = s.batches.map_values(
        |it: Batch| if it.class == class && it.holders == 0 { Batch { is_lost: true, ..it } } else { it },
    );
    State { stacks: s.stacks.insert(class, Seq::empty()), batches, stacked: s.stacked - size, ..s }
}

proof fn withdraw(s: State, size: int) -> (t: State)
    requires
        s.holds(),
        0 <= size <= s.going,
    ensures t.holds(),
{
    // D1: the subtraction does not wrap.
    assert(size <= s.kept);
    State { kept: s.kept - size, going: s.going - size, ..s }
}

/// The blocks of a batch are those of its thread from now on: the list of a class, or on their way to the pool.
proof fn dissolve(s: State, batch: int) -> (t: State)
    requires
        s.holds(),
        s.has(batch),
        s.batches[batch].holders >= 1,
    ensures t.holds(),
{
    // D2: no stack has it.
    assert(!s.is_stacked(batch));
    State { batches: s.batches.remove(batch), ..s }
}

} // verus!

fn main() {}
