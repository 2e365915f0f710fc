//! What a snapshot of a buffer finds: any number of readers, fills, runs, objects, and pops of frames.
//!
//! One reader stands for all, since readers change nothing. Only the owner stores plainly, so on x86 a reader finds its
//! stores in their order, later; that is what sequential consistency shows of an owner that is slower. The mark of a flip is
//! in `points.rs`.

use vstd::prelude::*;

verus! {

pub enum Owner {
    Ready,
    /// It takes memory away, gives some, or exchanges it (`advance`), and has stored so much of it. With these go the words
    /// that it stores.
    Changing(Words, Step),
}

pub struct Words {
    pub base: int,
    pub pool_limit: int,
    pub init: int,
    /// What is added to the bytes that were filled, and emptied.
    pub filled: int,
    pub emptied: int,
}

pub enum Step {
    Begun,
    Closed,
    Base,
    PoolLimit,
    Alloc,
    Init,
    Counted,
}

pub enum Reader {
    Away,
    Begun,
    Base,
    PoolLimit,
    Limit,
    Alloc,
    Init,
    Emptied,
    Filled,
}

pub struct Found {
    pub transitions: int,
    pub base: int,
    pub pool_limit: int,
    pub limit: int,
    pub alloc: int,
    pub init: int,
    pub emptied: int,
    pub filled: int,
}

pub struct State {
    pub transitions: int,
    pub base: int,
    pub pool_limit: int,
    pub limit: int,
    pub alloc: int,
    pub init: int,
    pub emptied: int,
    pub filled: int,
    pub owner: Owner,
    pub reader: Reader,
    pub found: Found,
    /// The bytes that are allocated and not popped, and those of runs that wait.
    pub allocated: int,
    pub waiting: int,
}

/// Words in the order that a buffer's have.
spec fn are_ordered(base: int, init: int, alloc: int, pool_limit: int) -> bool {
    if base == 0 {
        init == 0 && alloc == 0 && pool_limit == 0
    } else {
        0 < base <= init <= pool_limit && base <= alloc <= pool_limit
    }
}

impl State {
    spec fn is_even(self) -> bool {
        self.transitions % 2 == 0
    }

    /// The words have not changed together since the reader began.
    spec fn is_undisturbed(self) -> bool {
        self.found.transitions == self.transitions && self.is_even()
    }

    spec fn rest(self) -> int {
        self.pool_limit - self.init
    }

    spec fn theorems(self) -> bool {
        // O1: what was filled and not emptied is allocated, left, or waits.
        &&& self.owner is Ready ==> self.filled - self.emptied == self.allocated + self.rest() + self.waiting
        // O1: no more was emptied than was filled.
        &&& 0 <= self.emptied <= self.filled
    }

    spec fn owner_holds(self) -> bool {
        &&& 0 <= self.allocated && 0 <= self.waiting
        &&& self.is_even() == (self.owner is Ready)
        &&& self.owner is Ready ==> {
            &&& are_ordered(self.base, self.init, self.alloc, self.pool_limit)
            &&& 0 <= self.limit <= self.pool_limit
        }
        &&& self.owner is Changing ==> {
            let words = self.owner->Changing_0;
            let step = self.owner->Changing_1;
            let words_are_stored = step is Init || step is Counted;
            &&& are_ordered(words.base, words.init, words.init, words.pool_limit)
            &&& 0 <= words.filled && 0 <= words.emptied
            &&& step is Counted ==> self.filled - self.emptied == self.allocated + (words.pool_limit - words.init) + self.waiting
            &&& !(step is Counted) ==> self.filled + words.filled - self.emptied - words.emptied
                == self.allocated + (words.pool_limit - words.init) + self.waiting
            &&& !(step is Counted) ==> self.emptied + words.emptied <= self.filled + words.filled
            &&& !(step is Begun) ==> self.limit == 0
            &&& step is Base || step is PoolLimit || step is Alloc || words_are_stored ==> self.base == words.base
            &&& step is PoolLimit || step is Alloc || words_are_stored ==> self.pool_limit == words.pool_limit
            &&& step is Alloc || words_are_stored ==> self.alloc == words.init
            &&& words_are_stored ==> self.init == words.init
        }
    }

    spec fn has(self, stage: int) -> bool {
        stage <= match self.reader {
            Reader::Away => 0int,
            Reader::Begun => 1,
            Reader::Base => 2,
            Reader::PoolLimit => 3,
            Reader::Limit => 4,
            Reader::Alloc => 5,
            Reader::Init => 6,
            Reader::Emptied => 7,
            Reader::Filled => 8,
        }
    }

    spec fn reader_holds(self) -> bool {
        let found = self.found;
        &&& self.has(1) ==> found.transitions <= self.transitions
        &&& self.has(1) && self.is_undisturbed() ==> {
            &&& self.has(2) ==> found.base == self.base
            &&& self.has(3) ==> found.pool_limit == self.pool_limit
            &&& self.has(4) ==> 0 <= found.limit <= self.pool_limit
            &&& self.has(5) ==> are_ordered(self.base, self.base, found.alloc, self.pool_limit)
            &&& self.has(6) ==> are_ordered(self.base, found.init, self.alloc, self.pool_limit)
            &&& self.has(7) ==> 0 <= found.emptied <= self.emptied
            &&& self.has(8) ==> found.emptied <= found.filled
        }
    }

    spec fn holds(self) -> bool {
        self.theorems() && self.owner_holds() && self.reader_holds()
    }

    spec fn changes(self, words: Words) -> State {
        State { transitions: self.transitions + 1, owner: Owner::Changing(words, Step::Begun), ..self }
    }

    /// Has stored one more word.
    spec fn to(self, step: Step) -> State {
        State { owner: Owner::Changing(self.owner->Changing_0, step), ..self }
    }

    spec fn is_at(self, step: Step) -> bool {
        self.owner is Changing && self.owner->Changing_1 == step
    }
}

proof fn begins() -> (t: State)
    ensures t.holds(),
{
    let found = Found { transitions: 0, base: 0, pool_limit: 0, limit: 0, alloc: 0, init: 0, emptied: 0, filled: 0 };
    State {
        transitions: 0,
        base: 0,
        pool_limit: 0,
        limit: 0,
        alloc: 0,
        init: 0,
        emptied: 0,
        filled: 0,
        owner: Owner::Ready,
        reader: Reader::Away,
        found,
        allocated: 0,
        waiting: 0,
    }
}

// The owner.

/// Any requester.
proof fn trip(s: State) -> (t: State)
    requires s.holds(),
    ensures t.holds(),
{
    State { limit: 0, ..s }
}

/// The buffer's end, or a stop before it.
proof fn publish(s: State, limit: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        0 < limit <= s.pool_limit,
    ensures t.holds(),
{
    State { limit, ..s }
}

proof fn commit(s: State, end: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.base != 0,
        s.init <= end <= s.pool_limit,
    ensures t.holds(),
{
    State { init: end, allocated: s.allocated + (end - s.init), ..s }
}

/// A client in C moves `alloc` to the end of what it reserves.
proof fn alloc_moves(s: State, end: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.base != 0,
        s.init <= end <= s.pool_limit,
    ensures t.holds(),
{
    State { alloc: end, ..s }
}

/// A frame is popped within the memory that is attached: `alloc` first, then `init`.
proof fn retreat_stores_alloc(s: State, init: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.base != 0,
        s.base <= init <= s.init,
    ensures t.holds(),
{
    State { alloc: init, ..s }
}

proof fn retreat_stores_init(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.base != 0,
        s.alloc <= s.init <= s.alloc + s.allocated,
    ensures t.holds(),
{
    State { init: s.alloc, allocated: s.allocated - (s.init - s.alloc), ..s }
}

/// Objects outside of the memory that is attached are popped.
proof fn pop_counts(s: State, popped: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        0 <= popped <= s.allocated,
    ensures t.holds(),
{
    State { emptied: s.emptied + popped, allocated: s.allocated - popped, ..s }
}

/// A fill has more runs, which wait.
proof fn fill_counts_runs(s: State, bytes: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        0 <= bytes,
    ensures t.holds(),
{
    State { filled: s.filled + bytes, waiting: s.waiting + bytes, ..s }
}

/// Runs that wait are returned.
proof fn empty_counts_runs(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
    ensures t.holds(),
{
    State { emptied: s.emptied + s.waiting, waiting: 0, ..s }
}

proof fn attach_begins(s: State, base: int, init: int, pool_limit: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.base == 0 && s.limit == 0,
        0 < base <= init <= pool_limit,
    ensures t.holds(),
{
    s.changes(Words { base, pool_limit, init, filled: pool_limit - init, emptied: 0 })
}

proof fn detach_begins(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.base != 0,
    ensures t.holds(),
{
    s.changes(Words { base: 0, pool_limit: 0, init: 0, filled: 0, emptied: s.rest() })
}

/// The run that is attached is all allocated, and the next one is taken.
proof fn advance_begins(s: State, base: int, pool_limit: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.base != 0 && s.init == s.pool_limit,
        0 < base <= pool_limit <= base + s.waiting,
    ensures t.holds(),
{
    let t = s.changes(Words { base, pool_limit, init: base, filled: 0, emptied: 0 });
    State { waiting: s.waiting - (pool_limit - base), ..t }
}

/// The limit is closed, or was.
proof fn change_closes(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_at(Step::Begun),
    ensures t.holds(),
{
    State { limit: 0, ..s.to(Step::Closed) }
}

proof fn change_stores_base(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_at(Step::Closed),
    ensures t.holds(),
{
    State { base: s.owner->Changing_0.base, ..s.to(Step::Base) }
}

proof fn change_stores_pool_limit(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_at(Step::Base),
    ensures t.holds(),
{
    State { pool_limit: s.owner->Changing_0.pool_limit, ..s.to(Step::PoolLimit) }
}

proof fn change_stores_alloc(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_at(Step::PoolLimit),
    ensures t.holds(),
{
    State { alloc: s.owner->Changing_0.init, ..s.to(Step::Alloc) }
}

proof fn change_stores_init(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_at(Step::Alloc),
    ensures t.holds(),
{
    State { init: s.owner->Changing_0.init, ..s.to(Step::Init) }
}

proof fn change_counts(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_at(Step::Init),
    ensures t.holds(),
{
    let words = s.owner->Changing_0;
    State { filled: s.filled + words.filled, emptied: s.emptied + words.emptied, ..s.to(Step::Counted) }
}

proof fn change_finishes(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_at(Step::Counted),
    ensures t.holds(),
{
    State { transitions: s.transitions + 1, owner: Owner::Ready, ..s }
}

// A reader.

proof fn read_begins(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Away,
    ensures t.holds(),
{
    State { reader: Reader::Begun, found: Found { transitions: s.transitions, ..s.found }, ..s }
}

proof fn read_base(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Begun,
    ensures t.holds(),
{
    State { reader: Reader::Base, found: Found { base: s.base, ..s.found }, ..s }
}

proof fn read_pool_limit(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Base,
    ensures t.holds(),
{
    State { reader: Reader::PoolLimit, found: Found { pool_limit: s.pool_limit, ..s.found }, ..s }
}

proof fn read_limit(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is PoolLimit,
    ensures t.holds(),
{
    State { reader: Reader::Limit, found: Found { limit: s.limit, ..s.found }, ..s }
}

proof fn read_alloc(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Limit,
    ensures t.holds(),
{
    State { reader: Reader::Alloc, found: Found { alloc: s.alloc, ..s.found }, ..s }
}

proof fn read_init(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Alloc,
    ensures t.holds(),
{
    State { reader: Reader::Init, found: Found { init: s.init, ..s.found }, ..s }
}

proof fn read_emptied(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Init,
    ensures t.holds(),
{
    State { reader: Reader::Emptied, found: Found { emptied: s.emptied, ..s.found }, ..s }
}

proof fn read_filled(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Emptied,
    ensures t.holds(),
{
    State { reader: Reader::Filled, found: Found { filled: s.filled, ..s.found }, ..s }
}

/// The second look finds the count as it was, and even.
proof fn read_agrees(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Filled,
        s.transitions == s.found.transitions,
        s.found.transitions % 2 == 0,
    ensures t.holds(),
{
    let found = s.found;
    // T6: the words are of one fill, and in their order.
    assert(found.base == s.base && found.pool_limit == s.pool_limit);
    assert(are_ordered(found.base, found.init, found.alloc, found.pool_limit));
    assert(0 <= found.limit <= found.pool_limit);
    assert(found.emptied <= found.filled);
    State { reader: Reader::Away, ..s }
}

proof fn read_disagrees(s: State) -> (t: State)
    requires
        s.holds(),
        s.reader is Filled,
        s.transitions != s.found.transitions || s.found.transitions % 2 != 0,
    ensures t.holds(),
{
    State { reader: Reader::Away, ..s }
}

} // verus!

fn main() {}
