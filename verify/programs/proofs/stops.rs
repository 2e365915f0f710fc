//! Stops of a heap: any number of mutators, stops one after the other, and mutators that register meanwhile.
//!
//! The memory is x86's, as in `points.rs`: where a mutator is, it stores plainly, and that reaches memory later. All other
//! words are changed by read-modify-writes.

use vstd::prelude::*;

verus! {

pub enum At {
    /// It does not use the heap.
    Gone,
    /// It has stored that it runs; the look at the turn is next.
    Coming,
    /// It uses the heap.
    Using,
    /// It has stored that it does not run; the look whether a stop is wanted is next.
    Leaving,
    /// A stop is wanted; it counts its arrival next.
    Arriving,
}

pub struct Mutator {
    pub at: At,
    /// Whether it runs: what memory has, then what its stores make of that.
    pub runs: Seq<bool>,
}

pub enum Stopper {
    /// No stop is wanted.
    Away,
    /// The turn is odd; mutators are tripped, and the heavy barrier is next.
    Wanting,
    /// It looks at one mutator after the other, and had loaded the arrivals before.
    Looking,
    /// It found this one running, and sleeps while the arrivals are as they were.
    Asleep(int),
    /// The heap is stopped.
    Stopped,
}

pub struct State {
    /// Whether the turn is odd.
    pub is_wanted: bool,
    pub arrivals: int,
    pub mutators: Map<int, Mutator>,
    pub stopper: Stopper,
    pub loaded: int,
    /// The mutators that were registered when it began to look, and those that it found not running.
    pub listed: Set<int>,
    pub passed: Set<int>,
    /// Whether both barriers are fences, or the heavy one acts on the mutators.
    pub is_symmetric: bool,
}

impl Mutator {
    spec fn own(self) -> bool {
        self.runs.last()
    }

    spec fn drained(self) -> Mutator {
        Mutator { runs: seq![self.own()], ..self }
    }

    spec fn store(self, runs: bool, at: At) -> Mutator {
        Mutator { at, runs: self.runs.push(runs) }
    }
}

impl State {
    spec fn is_past_barrier(self) -> bool {
        self.stopper is Looking || self.stopper is Asleep || self.stopper is Stopped
    }

    spec fn with(self, m: int, mutator: Mutator) -> State {
        State { mutators: self.mutators.insert(m, mutator), ..self }
    }

    spec fn mutator_holds(self, m: int, mutator: Mutator) -> bool {
        &&& mutator.runs.len() >= 1
        &&& mutator.own() == (mutator.at is Using || mutator.at is Coming)
        &&& self.is_past_barrier() || self.is_symmetric ==> {
            // What uses the heap is seen running; what has gone is seen to have.
            &&& mutator.at is Using ==> mutator.runs.len() == 1 && mutator.runs[0]
            &&& mutator.at is Gone ==> mutator.runs.len() == 1 && !mutator.runs[0]
        }
        &&& self.is_past_barrier() && mutator.at is Using ==> self.listed.contains(m) && !self.passed.contains(m)
    }

    spec fn holds(self) -> bool {
        &&& self.is_wanted == !(self.stopper is Away)
        &&& self.loaded <= self.arrivals
        &&& forall|m: int| #[trigger] self.mutators.dom().contains(m) ==> self.mutator_holds(m, self.mutators[m])
        // No wake-up is lost: the mutator that it waits for counts its arrival yet.
        &&& self.stopper is Asleep && self.loaded == self.arrivals ==> {
            let m = self.stopper->Asleep_0;
            self.mutators.dom().contains(m) && !(self.mutators[m].at is Gone)
        }
        // While the heap is stopped, no mutator uses it.
        &&& self.stopper is Stopped ==> forall|m: int| #[trigger] self.mutators.dom().contains(m)
            ==> !(self.mutators[m].at is Using)
    }
}

proof fn begins(is_symmetric: bool) -> (t: State)
    ensures t.holds(),
{
    State {
        is_wanted: false,
        arrivals: 0,
        mutators: Map::empty(),
        stopper: Stopper::Away,
        loaded: 0,
        listed: Set::empty(),
        passed: Set::empty(),
        is_symmetric,
    }
}

// Mutators.

proof fn register(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        !s.mutators.dom().contains(m),
    ensures t.holds(),
{
    s.with(m, Mutator { at: At::Gone, runs: seq![false] })
}

/// The oldest plain store of a mutator reaches memory.
proof fn memory_takes_a_store(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].runs.len() > 1,
    ensures t.holds(),
{
    let it = s.mutators[m];
    s.with(m, Mutator { runs: it.runs.subrange(1, it.runs.len() as int), ..it })
}

proof fn come_back(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Gone,
    ensures t.holds(),
{
    s.with(m, s.mutators[m].store(true, At::Coming))
}

/// The light barrier is behind it: a fence, or nothing.
proof fn come_back_looks(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Coming,
        s.is_symmetric ==> s.mutators[m].runs.len() == 1,
    ensures t.holds(),
{
    let it = s.mutators[m];
    if s.is_wanted {
        s.with(m, it.store(false, At::Leaving))
    } else {
        s.with(m, Mutator { at: At::Using, ..it })
    }
}

proof fn use_heap(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Using,
    ensures t.holds(),
{
    // No mutator uses a heap that is stopped.
    assert(!(s.stopper is Stopped));
    s
}

/// It gives way, is away, or ends.
proof fn leave(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Using,
    ensures t.holds(),
{
    s.with(m, s.mutators[m].store(false, At::Leaving))
}

proof fn leave_looks(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Leaving,
        s.is_symmetric ==> s.mutators[m].runs.len() == 1,
    ensures t.holds(),
{
    let at = if s.is_wanted { At::Arriving } else { At::Gone };
    s.with(m, Mutator { at, ..s.mutators[m] })
}

proof fn arrive(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Arriving,
    ensures t.holds(),
{
    let it = s.mutators[m].drained();
    State { arrivals: s.arrivals + 1, ..s.with(m, Mutator { at: At::Gone, ..it }) }
}

// The thread that stops the heap.

proof fn want(s: State) -> (t: State)
    requires
        s.holds(),
        !s.is_wanted,
    ensures t.holds(),
{
    State { is_wanted: true, stopper: Stopper::Wanting, ..s }
}

/// The heavy barrier: a fence of its own, or one in each thread. It loads the arrivals, and begins to look.
proof fn order(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Wanting,
    ensures t.holds(),
{
    let drained = s.mutators.map_values(|it: Mutator| if s.is_symmetric { it } else { it.drained() });
    State {
        mutators: drained,
        stopper: Stopper::Looking,
        loaded: s.arrivals,
        listed: s.mutators.dom(),
        passed: Set::empty(),
        ..s
    }
}

proof fn look(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.stopper is Looking,
        s.mutators.dom().contains(m),
        !s.mutators[m].runs[0],
    ensures t.holds(),
{
    State { passed: s.passed.insert(m), ..s }
}

proof fn look_finds_it_running(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.stopper is Looking,
        s.mutators.dom().contains(m),
        s.mutators[m].runs[0],
    ensures t.holds(),
{
    State { stopper: Stopper::Asleep(m), ..s }
}

/// An arrival wakes it. It loads the arrivals, and looks again from the beginning.
proof fn look_again(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Asleep,
    ensures t.holds(),
{
    State { stopper: Stopper::Looking, loaded: s.arrivals, listed: s.mutators.dom(), passed: Set::empty(), ..s }
}

proof fn stop(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Looking,
        forall|m: int| #[trigger] s.listed.contains(m) ==> s.passed.contains(m),
    ensures t.holds(),
{
    State { stopper: Stopper::Stopped, ..s }
}

/// The stop ends, or is postponed.
proof fn end(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Stopped || s.stopper is Asleep,
    ensures t.holds(),
{
    State { is_wanted: false, stopper: Stopper::Away, ..s }
}

} // verus!

fn main() {}
