//! Stops of a heap: any number of mutators, stops one after the other, and mutators that register meanwhile.
//!
//! The memory is x86's, as in `points.rs`: where a mutator is, it stores plainly, and that reaches memory later. All other
//! words are changed by read-modify-writes. A thread sleeps on a word only if that is as it expects, and is woken by a call; it
//! may also wake by itself.

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
    /// It counted its arrival; it wakes the thread that stops the heap next.
    Waking,
    /// It waits for the end of the stop of this turn, and looks at the turn next.
    Waiting(int),
    /// It sleeps while the turn is this one.
    Asleep(int),
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
    /// It has loaded the arrivals, and looks at one mutator after the other.
    Looking,
    /// It found this one running; it goes to sleep next.
    Found(int),
    /// It found this one running, and sleeps while the arrivals are as they were.
    Asleep(int),
    /// It loads the arrivals, and begins to look again.
    Awake,
    /// The heap is stopped.
    Stopped,
}

pub struct State {
    /// Odd while a stop is wanted.
    pub turn: int,
    pub arrivals: int,
    pub mutators: Map<int, Mutator>,
    pub stopper: Stopper,
    pub loaded: int,
    /// The mutators that were registered when it began to look, and those that it found not running.
    pub listed: Set<int>,
    pub passed: Set<int>,
    /// Whether both barriers are fences, or the heavy one acts on the mutators.
    pub is_symmetric: bool,
    // What is said of them.
    /// The mutators that have counted their arrival, and have yet to wake the thread that stops the heap.
    pub arriving: Set<int>,
    /// The turns that have ended, and whose waiting mutators have yet to be woken.
    pub ending: Set<int>,
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

    /// It does not use the heap, and has nothing to count.
    spec fn is_out(self) -> bool {
        self.at is Gone || self.at is Waking || self.at is Waiting || self.at is Asleep
    }
}

impl State {
    spec fn is_wanted(self) -> bool {
        self.turn % 2 == 1
    }

    spec fn is_past_barrier(self) -> bool {
        !(self.stopper is Away) && !(self.stopper is Wanting)
    }

    spec fn with(self, m: int, mutator: Mutator) -> State {
        State { mutators: self.mutators.insert(m, mutator), ..self }
    }

    spec fn mutator_holds(self, m: int, mutator: Mutator) -> bool {
        &&& mutator.runs.len() >= 1
        &&& mutator.own() == (mutator.at is Using || mutator.at is Coming)
        &&& self.is_past_barrier() || self.is_symmetric ==> {
            // What uses the heap is seen running; what does not is seen not to.
            &&& mutator.at is Using ==> mutator.runs.len() == 1 && mutator.runs[0]
            &&& mutator.is_out() ==> mutator.runs.len() == 1 && !mutator.runs[0]
        }
        // It waits for a stop.
        &&& mutator.at is Waiting ==> mutator.at->Waiting_0 % 2 == 1
        &&& mutator.at is Asleep ==> mutator.at->Asleep_0 % 2 == 1
        &&& self.is_past_barrier() && mutator.at is Using ==> self.listed.contains(m) && !self.passed.contains(m)
    }

    spec fn theorems(self) -> bool {
        // S1: while the heap is stopped, no mutator uses it.
        &&& self.stopper is Stopped ==> forall|m: int| #[trigger] self.mutators.dom().contains(m)
            ==> !(self.mutators[m].at is Using)
        // S2: the mutator for which the stop sleeps counts its arrival yet, or one that has counted wakes it yet.
        &&& self.stopper is Asleep && self.loaded == self.arrivals ==> {
            let m = self.stopper->Asleep_0;
            self.mutators.dom().contains(m) && !self.mutators[m].is_out()
        }
        &&& self.stopper is Asleep && self.loaded != self.arrivals ==> self.arriving != Set::empty()
        // S3: the stop for whose end a mutator sleeps has yet to end, or it is woken yet.
        &&& forall|m: int| #[trigger] self.mutators.dom().contains(m) && self.mutators[m].at is Asleep
            ==> (self.mutators[m].at == At::Asleep(self.turn) && !(self.stopper is Away)) || self.ending != Set::empty()
    }

    spec fn holds(self) -> bool {
        &&& self.theorems()
        &&& self.is_wanted() == !(self.stopper is Away)
        &&& self.loaded <= self.arrivals
        &&& forall|m: int| #[trigger] self.mutators.dom().contains(m) ==> self.mutator_holds(m, self.mutators[m])
        &&& forall|m: int| #[trigger] self.arriving.contains(m)
            ==> self.mutators.dom().contains(m) && self.mutators[m].at is Waking
        &&& self.stopper is Found && self.loaded == self.arrivals ==> {
            let m = self.stopper->Found_0;
            self.mutators.dom().contains(m) && !self.mutators[m].is_out()
        }
    }
}

proof fn begins(is_symmetric: bool) -> (t: State)
    ensures t.holds(),
{
    State {
        turn: 0,
        arrivals: 0,
        mutators: Map::empty(),
        stopper: Stopper::Away,
        loaded: 0,
        listed: Set::empty(),
        passed: Set::empty(),
        is_symmetric,
        arriving: Set::empty(),
        ending: Set::empty(),
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
    if s.is_wanted() {
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
    // S1
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
    let at = if s.is_wanted() { At::Arriving } else { At::Gone };
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
    let arrived = s.with(m, Mutator { at: At::Waking, ..it });
    State { arrivals: s.arrivals + 1, arriving: s.arriving.insert(m), ..arrived }
}

/// It wakes the thread that stops the heap, if that sleeps.
proof fn arrive_wakes(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Waking,
    ensures t.holds(),
{
    let woken = if s.stopper is Asleep { Stopper::Awake } else { s.stopper };
    State { stopper: woken, arriving: s.arriving.remove(m), ..s.with(m, Mutator { at: At::Gone, ..s.mutators[m] }) }
}

/// It finds that a stop is wanted, and waits for its end.
proof fn wait(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Gone,
        s.is_wanted(),
    ensures t.holds(),
{
    s.with(m, Mutator { at: At::Waiting(s.turn), ..s.mutators[m] })
}

proof fn wait_sleeps(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at == At::Waiting(s.turn),
    ensures t.holds(),
{
    s.with(m, Mutator { at: At::Asleep(s.turn), ..s.mutators[m] })
}

/// It wakes by itself, and looks again.
proof fn wait_wakes(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Asleep,
    ensures t.holds(),
{
    s.with(m, Mutator { at: At::Waiting(s.mutators[m].at->Asleep_0), ..s.mutators[m] })
}

/// The turn is another one: the stop has ended.
proof fn wait_ends(s: State, m: int) -> (t: State)
    requires
        s.holds(),
        s.mutators.dom().contains(m),
        s.mutators[m].at is Waiting,
        s.mutators[m].at->Waiting_0 != s.turn,
    ensures t.holds(),
{
    s.with(m, Mutator { at: At::Gone, ..s.mutators[m] })
}

// The thread that stops the heap.

proof fn want(s: State) -> (t: State)
    requires
        s.holds(),
        !s.is_wanted(),
    ensures t.holds(),
{
    State { turn: s.turn + 1, stopper: Stopper::Wanting, ..s }
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
    State { stopper: Stopper::Found(m), ..s }
}

proof fn sleep(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Found,
        s.loaded == s.arrivals,
    ensures t.holds(),
{
    State { stopper: Stopper::Asleep(s.stopper->Found_0), ..s }
}

/// The arrivals are not as they were; or it wakes by itself, for example because its patience is over.
proof fn sleep_ends(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Asleep || (s.stopper is Found && s.loaded != s.arrivals),
    ensures t.holds(),
{
    State { stopper: Stopper::Awake, ..s }
}

/// It loads the arrivals, and looks again from the beginning.
proof fn look_again(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Awake,
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

/// The stop ends; or it is postponed, or what trips the mutators unwinds.
proof fn end(s: State) -> (t: State)
    requires
        s.holds(),
        s.stopper is Stopped || s.stopper is Found || s.stopper is Wanting,
    ensures t.holds(),
{
    State { turn: s.turn + 1, stopper: Stopper::Away, ending: s.ending.insert(s.turn), ..s }
}

/// It wakes the mutators that sleep.
proof fn end_wakes(s: State, turn: int) -> (t: State)
    requires
        s.holds(),
        s.ending.contains(turn),
    ensures t.holds(),
{
    let woken = s.mutators.map_values(
        |it: Mutator| if it.at is Asleep { Mutator { at: At::Waiting(it.at->Asleep_0), ..it } } else { it },
    );
    State { mutators: woken, ending: s.ending.remove(turn), ..s }
}

} // verus!

fn main() {}
