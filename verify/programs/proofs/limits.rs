//! Trips of an owner with several limits, as caches are: any number of limits, requesters and rounds, controls that unwind,
//! and owners one after the other.
//!
//! All accesses are read-modify-writes or loads of words that only those change, so x86's memory shows no other order than
//! sequential consistency does.

use vstd::prelude::*;

verus! {

pub enum Owner {
    /// It is on its fast path, or handles requests.
    Ready,
    /// It has observed, and publishes this limit next.
    Observed(int),
    /// It published this limit; the second look is next.
    Published(int),
    /// The second look found a request; it closes this limit next.
    Moved(int),
}

pub struct State {
    pub requests: int,
    /// The limits that are not zero. A limit is any number.
    pub open: Set<int>,
    pub observed: int,
    pub owner: Owner,
    // What is said of them.
    /// The newest request that has closed a limit; zero if none has.
    pub closed: Map<int, int>,
    /// How many requests this owner found when it began, and how many were passed to its control.
    pub first: int,
    pub handled: int,
}

impl State {
    spec fn holds(self) -> bool {
        &&& 0 <= self.first <= self.observed <= self.requests
        // Each request is passed to the control once.
        &&& self.handled == self.observed - self.first
        &&& forall|limit: int| #[trigger] self.closed.dom().contains(limit) ==> 1 <= self.closed[limit] <= self.requests
        // T4: what closed a limit and is not observed has left it zero, unless the owner is about to look and to close it.
        &&& forall|limit: int| #[trigger] self.closed.dom().contains(limit) && self.observed < self.closed[limit]
            ==> !self.open.contains(limit) || self.owner == Owner::Published(limit) || self.owner == Owner::Moved(limit)
    }
}

proof fn begins() -> (t: State)
    ensures t.holds(),
{
    State {
        requests: 0,
        open: Set::empty(),
        observed: 0,
        owner: Owner::Ready,
        closed: Map::empty(),
        first: 0,
        handled: 0,
    }
}

proof fn request_counts(s: State) -> (t: State)
    requires s.holds(),
    ensures t.holds(),
{
    State { requests: s.requests + 1, ..s }
}

/// Any requester that has counted closes the limits one after the other; this is one of them.
proof fn request_closes(s: State, number: int, limit: int) -> (t: State)
    requires
        s.holds(),
        1 <= number <= s.requests,
    ensures t.holds(),
{
    let is_newer = !s.closed.dom().contains(limit) || s.closed[limit] < number;
    State { open: s.open.remove(limit), closed: if is_newer { s.closed.insert(limit, number) } else { s.closed }, ..s }
}

/// The owner observes, and handles what is new, before it publishes a limit. It does not publish if its control unwinds.
proof fn observe(s: State, limit: int, unwinds: bool) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
    ensures t.holds(),
{
    let fresh = s.requests - s.observed;
    State {
        observed: s.requests,
        handled: s.handled + fresh,
        owner: if unwinds { Owner::Ready } else { Owner::Observed(limit) },
        ..s
    }
}

proof fn publish(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Observed,
    ensures t.holds(),
{
    let limit = s.owner->Observed_0;
    State { open: s.open.insert(limit), owner: Owner::Published(limit), ..s }
}

proof fn look_again(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Published,
        s.requests == s.observed,
    ensures t.holds(),
{
    // T4, of all limits.
    assert(forall|limit: int| #[trigger] s.closed.dom().contains(limit) ==> s.closed[limit] <= s.observed);
    State { owner: Owner::Ready, ..s }
}

proof fn look_again_finds_a_request(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Published,
        s.requests != s.observed,
    ensures t.holds(),
{
    State { owner: Owner::Moved(s.owner->Published_0), ..s }
}

proof fn close_again(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Moved,
    ensures t.holds(),
{
    State { open: s.open.remove(s.owner->Moved_0), owner: Owner::Ready, ..s }
}

/// The owner finds a limit that is not zero: no request that has closed it waits.
proof fn pass(s: State, limit: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.open.contains(limit),
    ensures t.holds(),
{
    // T4.
    assert(s.closed.dom().contains(limit) ==> s.closed[limit] <= s.observed);
    s
}

/// The owner leaves, and another begins, whose limits are zero.
proof fn renew(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
    ensures t.holds(),
{
    State { open: Set::empty(), observed: s.requests, first: s.requests, handled: 0, ..s }
}

} // verus!

fn main() {}
