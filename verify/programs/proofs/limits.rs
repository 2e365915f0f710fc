//! Trips of a cache, which has several limits: any number of limits, requesters and rounds, flushes that unwind, and caches of
//! a descriptor one after the other.
//!
//! All accesses are read-modify-writes or loads of words that only those change, so x86's memory shows no other order than
//! sequential consistency does.

use vstd::prelude::*;

verus! {

pub enum Owner {
    /// It is on its fast path.
    Ready,
    /// It has looked at the requests, and handles what is new; then it publishes this limit, or none if that is zero.
    Handling(int),
    /// It published this limit; the second look is next.
    Published(int),
    /// The second look found a request; it closes this limit next.
    Moved(int),
    /// It closed this limit, and begins again.
    Closed(int),
}

pub struct State {
    pub requests: int,
    /// The limits that are not zero. A limit is any number but zero.
    pub open: Set<int>,
    pub owner: Owner,
    /// The requests that the cache has observed, and those that it found while it handles them.
    pub observed: int,
    pub found: int,
    // What is said of them.
    /// The newest request that has closed a limit; zero if none has.
    pub closed: Map<int, int>,
    /// Up to which request this cache has handled all to the end, or was there to handle none.
    pub handled: int,
}

impl State {
    spec fn is_about_to_look(self, limit: int) -> bool {
        self.owner == Owner::Published(limit) || self.owner == Owner::Moved(limit)
    }

    spec fn theorems(self) -> bool {
        // T4, of each limit: what closed it and is not observed has left it zero, unless the cache is about to look again.
        &&& forall|limit: int| #[trigger] self.closed.dom().contains(limit) && self.observed < self.closed[limit]
            ==> !self.open.contains(limit) || self.is_about_to_look(limit)
        // T4 of caches: what counts as observed was handled to the end.
        &&& self.observed <= self.handled
    }

    spec fn holds(self) -> bool {
        &&& self.theorems()
        &&& 0 <= self.observed <= self.handled <= self.requests
        &&& !(self.owner is Ready) ==> self.observed <= self.found <= self.requests
        &&& !(self.owner is Ready) && !(self.owner is Handling) ==> self.found <= self.handled
        &&& forall|limit: int| #[trigger] self.closed.dom().contains(limit) ==> 1 <= self.closed[limit] <= self.requests
    }
}

/// A descriptor whose limits are open from the start, as a cache without a depot has them, or are not.
proof fn begins(open: Set<int>) -> (t: State)
    ensures t.holds(),
{
    State { requests: 0, open, owner: Owner::Ready, observed: 0, found: 0, closed: Map::empty(), handled: 0 }
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

/// The cache looks at the requests, to arm the class that has this limit; or no class.
proof fn observe(s: State, limit: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
    ensures t.holds(),
{
    State { found: s.requests, owner: Owner::Handling(limit), ..s }
}

proof fn observe_again(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Closed,
    ensures t.holds(),
{
    State { found: s.requests, owner: Owner::Handling(s.owner->Closed_0), ..s }
}

/// All is flushed, if there were new requests, and the limit is published.
proof fn publish(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Handling,
        s.owner->Handling_0 != 0,
    ensures t.holds(),
{
    let limit = s.owner->Handling_0;
    let handled = if s.found > s.handled { s.found } else { s.handled };
    State { open: s.open.insert(limit), handled, owner: Owner::Published(limit), ..s }
}

/// All is flushed for an allocation that no class serves.
proof fn handling_ends(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Handling,
        s.owner->Handling_0 == 0,
    ensures t.holds(),
{
    State { observed: s.found, handled: if s.found > s.handled { s.found } else { s.handled }, owner: Owner::Ready, ..s }
}

/// The flush unwinds: the cache has observed nothing, and will handle these requests again.
proof fn handling_unwinds(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Handling,
    ensures t.holds(),
{
    State { owner: Owner::Ready, ..s }
}

proof fn look_again(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Published,
        s.requests == s.found,
    ensures t.holds(),
{
    State { observed: s.found, owner: Owner::Ready, ..s }
}

proof fn look_again_finds_a_request(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Published,
        s.requests != s.found,
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
    State { open: s.open.remove(s.owner->Moved_0), owner: Owner::Closed(s.owner->Moved_0), ..s }
}

/// The cache closes a limit itself: to give it another value, because it met damage, or because it begins or ends.
proof fn disarm(s: State, limit: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready || s.owner is Handling,
    ensures t.holds(),
{
    State { open: s.open.remove(limit), ..s }
}

/// The cache finds a limit that is not zero: no request that has closed it waits.
proof fn pass(s: State, limit: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.open.contains(limit),
    ensures t.holds(),
{
    // T4
    assert(s.closed.dom().contains(limit) ==> s.closed[limit] <= s.observed);
    s
}

/// The cache is dropped, and another has the descriptor. Whatever limits it finds open, earlier requests were not for it.
proof fn renew(s: State, open: Set<int>) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
    ensures t.holds(),
{
    State { open, observed: s.requests, handled: s.requests, ..s }
}

} // verus!

fn main() {}
