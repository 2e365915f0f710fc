//! Trips and flips of one buffer: any number of requesters, flips, objects, fills and unwinding controls.
//!
//! The words and steps are those of `core/src/shared/trips.rs` and `ap/src/protocol/`; `transitions.tsv` names the code of
//! each step. What a step asserts are the theorems, T1 to T6 (design/proofs.md `.theorems`).
//!
//! The memory is x86's: plain stores, which only the owner has, reach memory later, one after the other; its own
//! read-modify-writes come after all of them, and others see a word as memory has it. Sequential consistency is the case in
//! which each store reaches memory at once.

use vstd::prelude::*;

verus! {

/// What memory has of the words that the owner stores plainly. With each address goes the fill that it is of, which no step
/// of the protocol looks at.
pub struct View {
    pub base: int,
    pub base_fill: int,
    pub init: int,
    pub init_fill: int,
    /// Whether `transitions` is odd.
    pub is_changing: bool,
}

/// `init_at_flip`.
pub enum Mark {
    Null,
    Undecided,
    Seen(int),
}

/// What the owner does next.
pub enum Owner {
    /// It is between objects.
    Ready,
    /// Requests are observed; the flip is ended next.
    Observed,
    /// A mark was loaded, which is exchanged next.
    Ending(Mark),
    /// The flip is ended; the control is called, and the limit is published next.
    Handling,
    /// The limit is published; the second look is next.
    Published,
    /// The second look found a request; the limit is closed next.
    Moved,
    /// An object is reserved.
    Reserved,
    /// The object is declared; the test is next.
    Declared,
    /// The test found zero.
    Tripped,
    /// The flip was undecided; the owner decides it next.
    Deciding,
    /// Memory is taken away: what was done so far.
    Detaching,
    DetachingClosed,
    DetachingEnded,
    DetachingBase,
    DetachingInit,
    /// Memory is given.
    Attaching,
    AttachingBase,
    AttachingInit,
}

/// What the flip that has the lock does next.
pub enum Flipper {
    /// No flip has the lock.
    Away,
    Marked,
    Counted,
    Closed,
    /// The heavy barrier is behind it.
    Ordered,
    /// It looked whether memory is changing.
    Looked,
    /// It loaded `init`.
    Read,
    Decided,
    BaseRead,
    /// The owner went on from an earlier flip, which this one did not mark.
    Again,
}

pub struct State {
    // What is shared. The first of the views is what memory has, the last what the owner has stored.
    pub views: Seq<View>,
    /// Whether `limit` is not zero.
    pub is_open: bool,
    pub requests: int,
    pub mark: Mark,
    // The owner's.
    pub owner: Owner,
    pub observed: int,
    /// Where the object that is reserved ends. It begins where objects stand to.
    pub end: int,
    // The flipper's.
    pub flipper: Flipper,
    /// Whether it marked the buffer itself.
    pub begun: bool,
    pub found_changing: bool,
    /// What it loaded of `init`, and then what it returns; zero for null.
    pub found: int,
    pub found_fill: int,
    pub found_base: int,
    pub found_base_fill: int,
    // What does not change.
    /// The pair of barriers: whether both are fences, or the heavy one acts on the owner.
    pub is_symmetric: bool,
    /// Whether the buffer may be flipped. If not, a commit stores and does nothing else.
    pub is_flippable: bool,
    // What is said of them, and no step looks at.
    /// The fill that is attached, or zero; and how many there were.
    pub fill: int,
    pub fills: int,
    /// Where the memory of the fill begins, and up to where its objects stand.
    pub start: int,
    pub stood: int,
    /// Up to where flips have fixed objects of this fill; and what the last flip returned, until the owner goes on from it.
    pub fixed: int,
    pub returned: int,
    /// The fill that the mark is of.
    pub mark_fill: int,
    /// The request of the flip that marked the buffer; zero while it has not counted.
    pub flip_request: int,
    /// The newest request whose requester has closed the limit.
    pub closed: int,
    /// How many requests this owner found when it began, and how many were passed to its control.
    pub first: int,
    pub passed: int,
    /// Whether a flip closed the limit since the reservation began.
    pub flip_closed: bool,
    /// Whether the flip that has the lock was called in this reservation; whether one was called and returned in it.
    pub flip_within: bool,
    pub is_doomed: bool,
}

impl State {
    spec fn memory(self) -> View {
        self.views[0]
    }

    spec fn own(self) -> View {
        self.views.last()
    }

    /// The owner stores plainly.
    spec fn store(self, view: View) -> State {
        State { views: self.views.push(view), ..self }
    }

    /// All that the owner stored is in memory.
    spec fn drained(self) -> State {
        State { views: seq![self.own()], ..self }
    }

    /// `init` is in the memory that is attached.
    spec fn is_live(self, view: View) -> bool {
        self.fill != 0 && view.init != 0 && view.init_fill == self.fill
    }

    /// `init` is in memory that was taken away.
    spec fn is_stale(self, view: View) -> bool {
        view.init != 0 && (self.fill == 0 || view.init_fill != self.fill)
    }

    spec fn has_reservation(self) -> bool {
        self.owner is Reserved || self.has_declared()
    }

    spec fn has_declared(self) -> bool {
        self.owner is Declared || self.owner is Tripped || self.owner is Deciding
    }

    /// No object is declared that may be withdrawn, and memory does not change.
    spec fn is_between(self) -> bool {
        self.owner is Ready || self.owner is Observed || self.owner is Ending || self.owner is Handling
            || self.owner is Published || self.owner is Moved
    }

    /// The limit is published, and may be closed once more.
    spec fn is_about_to_look(self) -> bool {
        self.owner is Published || self.owner is Moved
    }

    /// The flip that marked the buffer has closed the limit.
    spec fn is_past_close(self) -> bool {
        self.flipper is Closed || self.is_past_barrier()
    }

    spec fn is_past_barrier(self) -> bool {
        self.flipper is Ordered || self.flipper is Looked || self.flipper is Read
    }

    /// No object may begin until the owner has gone on from the flip.
    spec fn is_trapped(self) -> bool {
        self.mark is Seen || (self.mark is Undecided && self.is_past_close())
    }

    spec fn theorems(self) -> bool {
        // T1: while a flip lasts, nothing stands beyond what it saw, and returned.
        &&& self.mark is Seen ==> self.stood <= self.mark->Seen_0
        &&& self.returned != 0 ==> self.stood <= self.returned
        // T4: what closed the limit and is not observed has left it zero, unless the owner is about to look again.
        &&& self.observed < self.closed ==> !self.is_open || self.is_about_to_look()
        // T4: each request is passed to the control once.
        &&& self.passed == self.observed - self.first
        // T5: what a flip has fixed stands, or is declared.
        &&& self.fixed <= self.stood || (self.has_declared() && self.fixed == self.end)
    }

    spec fn numbers_hold(self) -> bool {
        &&& self.views.len() >= 1
        &&& 0 <= self.fill <= self.fills
        &&& 0 <= self.observed <= self.requests
        &&& 0 <= self.closed <= self.requests
        &&& 0 <= self.flip_request <= self.requests
        &&& self.fill != 0 && !(self.owner is Attaching || self.owner is AttachingBase) ==> 0 < self.start <= self.stood
    }

    spec fn view_holds(self, view: View) -> bool {
        &&& 0 <= view.init
        &&& view.init_fill <= self.fills
        &&& self.is_live(view) ==> view.base_fill == self.fill && view.base == self.start
        &&& self.is_stale(view) ==> view.is_changing
    }

    spec fn views_hold(self) -> bool {
        forall|i: int| 0 <= i < self.views.len() ==> self.view_holds(#[trigger] self.views[i])
    }

    /// Of two views, the second is stored later.
    spec fn pair_holds(self, first: View, second: View) -> bool {
        &&& self.is_live(first) ==> self.is_live(second)
        &&& self.is_stale(second) ==> self.is_stale(first)
        &&& !(self.mark is Seen) && self.is_live(first) ==> first.init <= second.init
    }

    spec fn pairs_hold(self) -> bool {
        forall|i: int, j: int|
            0 <= i < j < self.views.len() ==> self.pair_holds(#[trigger] self.views[i], #[trigger] self.views[j])
    }

    /// Up to where objects are declared in each view.
    spec fn declared_holds(self, view: View) -> bool {
        &&& !(self.mark is Seen) && self.is_live(view) ==> view.init <= self.stood || (self.has_declared() && view.init == self.end)
        &&& self.mark is Undecided && self.is_past_barrier() && self.is_live(view) ==> self.stood <= view.init
        &&& self.is_symmetric && !(self.mark is Seen) && self.is_live(view) ==> self.stood <= view.init
        &&& self.mark is Seen ==> self.is_live(view) && self.mark->Seen_0 <= view.init
    }

    spec fn all_declared_hold(self) -> bool {
        forall|i: int| 0 <= i < self.views.len() ==> self.declared_holds(#[trigger] self.views[i])
    }

    /// What the owner has stored, by what it does next.
    spec fn own_holds(self) -> bool {
        let own = self.own();
        &&& self.is_between() || self.owner is Reserved ==> !own.is_changing && if self.fill == 0 {
            own.init == 0 && own.base == 0
        } else {
            self.is_live(own) && own.init == self.stood
        }
        &&& self.has_reservation() ==> self.fill != 0 && self.stood < self.end
        &&& self.has_declared() ==> !own.is_changing && self.is_live(own) && own.init == self.end
        &&& self.owner is Detaching || self.owner is DetachingClosed ==> own.is_changing && self.is_live(own)
            && own.init == self.stood
        &&& self.owner is DetachingEnded ==> self.fill == 0 && own.is_changing && self.views.len() == 1
        &&& self.owner is DetachingBase ==> self.fill == 0 && own.is_changing && own.base == 0
        &&& self.owner is DetachingInit ==> self.fill == 0 && own.is_changing && own.base == 0 && own.init == 0
        &&& self.owner is Attaching ==> self.fill != 0 && own.is_changing && own.init == 0
        &&& self.owner is AttachingBase ==> self.fill != 0 && own.is_changing && own.init == 0 && 0 < self.start
            && own.base_fill == self.fill && own.base == self.start
        &&& self.owner is AttachingInit ==> self.fill != 0 && own.is_changing && self.is_live(own) && own.init == self.stood
        &&& self.is_about_to_look() ==> self.fill != 0 && self.views.len() == 1
    }

    spec fn limit_holds(self) -> bool {
        &&& self.is_open ==> self.fill != 0 && (self.is_between() || self.owner is Reserved || self.owner is Declared
            || self.owner is Detaching)
        &&& self.is_trapped() ==> !self.is_open || (self.is_about_to_look() && 0 < self.flip_request)
        &&& self.owner is Handling || self.is_about_to_look() ==> {
            &&& !(self.mark is Null) && 0 < self.flip_request ==> self.observed < self.flip_request
            &&& self.mark is Seen ==> 0 < self.flip_request
        }
        &&& self.is_symmetric && self.is_open && (self.is_between() || self.owner is Reserved) ==> self.views.len() == 1
        &&& self.is_symmetric && self.owner is Reserved ==> self.views.len() == 1
        &&& self.is_symmetric && (self.owner is Tripped || self.owner is Deciding) ==> self.views.len() == 1
    }

    spec fn flip_holds(self) -> bool {
        &&& !self.is_flippable ==> self.mark is Null && self.flipper is Away && !self.is_symmetric
        &&& self.returned != 0 ==> self.mark == Mark::Seen(self.returned)
        &&& self.mark is Undecided ==> self.begun && (self.flipper is Marked || self.flipper is Counted || self.is_past_close())
        &&& self.mark is Undecided && self.flipper is Marked ==> self.flip_request == 0
        &&& self.mark is Undecided && !(self.flipper is Marked) ==> 0 < self.flip_request
        &&& self.mark is Seen ==> {
            &&& 0 < self.mark->Seen_0
            &&& self.fill != 0 && self.mark_fill == self.fill
            &&& self.mark->Seen_0 == self.stood || (self.has_declared() && self.mark->Seen_0 == self.end)
            &&& self.flipper is Counted || self.is_past_close() ==> 0 < self.flip_request || !self.begun
        }
        &&& self.mark is Undecided && self.flipper is Looked && !self.found_changing ==> !self.is_stale(self.memory())
        &&& self.flipper is Looked || self.flipper is Read ==> self.begun
        &&& self.mark is Undecided && self.flipper is Read && self.found != 0 ==> {
            &&& 0 < self.found
            &&& self.is_live(self.memory())
            &&& self.found_fill == self.fill
            &&& self.stood <= self.found <= self.memory().init
            &&& self.found == self.stood || (self.has_declared() && self.found == self.end)
        }
        &&& !(self.flipper is Away) && !(self.flipper is Again) && !self.begun ==> self.found != 0 && (self.mark is Null
            || self.mark == Mark::Seen(self.found))
        &&& self.flipper is Decided || self.flipper is BaseRead ==> (self.mark is Null || self.mark == Mark::Seen(self.found))
        &&& self.flipper is BaseRead && self.mark is Seen ==> self.found_base_fill == self.fill && self.found_base == self.start
        &&& self.flipper is Again ==> self.mark is Null && !self.flip_within
    }

    /// What is said of reservations.
    spec fn reservation_holds(self) -> bool {
        &&& self.has_reservation() && self.is_trapped() ==> self.flip_closed
        &&& self.flip_within ==> {
            &&& self.owner is Reserved && !(self.flipper is Away)
            &&& self.begun && (self.flipper is Marked || self.flipper is Counted || self.is_past_close())
                ==> self.mark is Undecided
            &&& !self.begun ==> self.mark == Mark::Seen(self.found)
            &&& self.is_past_barrier() && self.begun ==> self.views.len() == 1
            &&& self.flipper is Looked ==> !self.found_changing
            &&& self.flipper is Read ==> self.found != 0
            &&& self.flipper is Decided || self.flipper is BaseRead ==> self.mark == Mark::Seen(self.found)
        }
        &&& self.is_doomed ==> self.has_reservation() && !(self.owner is Deciding) && self.mark == Mark::Seen(self.stood)
        &&& self.fixed <= self.stood || (self.has_declared() && self.mark == Mark::Seen(self.end) && self.fixed == self.end)
        &&& self.fill == 0 || self.owner is Attaching || self.owner is AttachingBase ==> self.fixed == 0
    }

    spec fn holds(self) -> bool {
        &&& self.theorems()
        &&& self.numbers_hold()
        &&& self.views_hold()
        &&& self.pairs_hold()
        &&& self.all_declared_hold()
        &&& self.own_holds()
        &&& self.limit_holds()
        &&& self.flip_holds()
        &&& self.reservation_holds()
    }

    /// A reservation begins, up to `end`.
    spec fn reserved(self, end: int) -> State {
        State { owner: Owner::Reserved, end, flip_closed: false, flip_within: false, is_doomed: false, ..self }
    }

    /// The object that was declared stands, or does not.
    spec fn stands(self) -> State {
        State { owner: Owner::Ready, stood: self.end, is_doomed: false, ..self }
    }

    spec fn withdrawn(self) -> State {
        State { owner: Owner::Ready, is_doomed: false, ..self.store(View { init: self.stood, ..self.own() }) }
    }
}

/// A reset buffer. One that is not flipped has no barriers.
proof fn begins(is_symmetric: bool, is_flippable: bool) -> (t: State)
    requires is_symmetric ==> is_flippable,
    ensures t.holds(),
{
    let null = View { base: 0, base_fill: 0, init: 0, init_fill: 0, is_changing: false };
    State {
        views: seq![null],
        is_open: false,
        requests: 0,
        mark: Mark::Null,
        owner: Owner::Ready,
        observed: 0,
        end: 0,
        flipper: Flipper::Away,
        begun: false,
        found_changing: false,
        found: 0,
        found_fill: 0,
        found_base: 0,
        found_base_fill: 0,
        is_symmetric,
        is_flippable,
        fill: 0,
        fills: 0,
        start: 0,
        stood: 0,
        fixed: 0,
        returned: 0,
        mark_fill: 0,
        flip_request: 0,
        closed: 0,
        first: 0,
        passed: 0,
        flip_closed: false,
        flip_within: false,
        is_doomed: false,
    }
}

/// The oldest of the owner's plain stores reaches memory.
proof fn memory_takes_a_store(s: State) -> (t: State)
    requires
        s.holds(),
        s.views.len() > 1,
    ensures t.holds(),
{
    State { views: s.views.subrange(1, s.views.len() as int), ..s }
}

// Requesters.

proof fn request_counts(s: State) -> (t: State)
    requires s.holds(),
    ensures t.holds(),
{
    State { requests: s.requests + 1, ..s }
}

/// Any requester that has counted, which was the `number`-th.
proof fn request_closes(s: State, number: int) -> (t: State)
    requires
        s.holds(),
        1 <= number <= s.requests,
    ensures t.holds(),
{
    State { is_open: false, closed: if number > s.closed { number } else { s.closed }, ..s }
}

// The owner answers.

proof fn observe(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
    ensures t.holds(),
{
    let passed = s.passed + (s.requests - s.observed);
    State { observed: s.requests, passed, owner: Owner::Observed, ..s }
}

proof fn end_flip_loads(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Observed,
    ensures t.holds(),
{
    State { owner: if s.mark is Null { Owner::Handling } else { Owner::Ending(s.mark) }, ..s }
}

proof fn end_flip_exchanges(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ending,
    ensures t.holds(),
{
    if s.mark == s.owner->Ending_0 {
        State { mark: Mark::Null, returned: 0, owner: Owner::Handling, ..s.drained() }
    } else if s.mark is Null {
        State { owner: Owner::Handling, ..s }
    } else {
        State { owner: Owner::Ending(s.mark), ..s }
    }
}

/// The control returns to a slow path that goes on, or unwinds.
proof fn handling_ends(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Handling,
    ensures t.holds(),
{
    State { owner: Owner::Ready, ..s }
}

proof fn publish(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Handling,
        s.fill != 0,
    ensures t.holds(),
{
    State { is_open: true, owner: Owner::Published, ..s.drained() }
}

/// The second look finds nothing new. The object that the slow path is about is reserved.
proof fn look_again(s: State, end: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Published,
        s.requests == s.observed,
        s.stood < end,
    ensures t.holds(),
{
    // T4
    assert(s.closed <= s.observed);
    s.reserved(end)
}

proof fn look_again_finds_a_request(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Published,
        s.requests != s.observed,
    ensures t.holds(),
{
    State { owner: Owner::Moved, ..s }
}

/// Then the owner begins again.
proof fn close_again(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Moved,
    ensures t.holds(),
{
    State { is_open: false, owner: Owner::Ready, ..s.drained() }
}

/// A stop that is wanted closes the fast path once more.
proof fn heed(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Reserved,
    ensures t.holds(),
{
    State { is_open: false, ..s.drained() }
}

/// A descriptor whose owner left has another one, who did not observe earlier requests.
proof fn renew(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.fill == 0,
    ensures t.holds(),
{
    State { observed: s.requests, first: s.requests, passed: 0, ..s }
}

// The owner reserves and commits.

proof fn reserve(s: State, end: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.is_open,
        s.stood < end,
    ensures t.holds(),
{
    // T4: no request that has closed the limit waits.
    assert(s.closed <= s.observed);
    s.reserved(end)
}

/// In a buffer that is not flipped, a limit that is zero stays so for an object that takes all that is left.
proof fn reserve_trapped(s: State, end: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Handling,
        !s.is_flippable,
        !s.is_open,
        s.fill != 0,
        s.stood < end,
    ensures t.holds(),
{
    s.reserved(end)
}

/// The same without a look for a flip, if no request is new.
proof fn reserve_run(s: State, end: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        !s.is_flippable,
        !s.is_open,
        s.requests == s.observed,
        s.fill != 0,
        s.stood < end,
    ensures t.holds(),
{
    // T4
    assert(s.closed <= s.observed);
    s.reserved(end)
}

proof fn abandon(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Reserved,
    ensures t.holds(),
{
    State { owner: Owner::Ready, flip_within: false, is_doomed: false, ..s }
}

/// A commit in a buffer that is not flipped.
proof fn commit_stores(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Reserved,
        !s.is_flippable,
    ensures t.holds(),
{
    // T2
    assert(!s.is_doomed);
    State { flip_within: false, ..s.store(View { init: s.end, ..s.own() }).stands() }
}

proof fn declare(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Reserved,
        s.is_flippable,
    ensures t.holds(),
{
    State { owner: Owner::Declared, flip_within: false, ..s.store(View { init: s.end, ..s.own() }) }
}

/// The light barrier is behind the owner: a fence, or nothing.
proof fn test_finds_a_limit(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Declared,
        s.is_symmetric ==> s.views.len() == 1,
        s.is_open,
    ensures t.holds(),
{
    // T2
    assert(!s.is_doomed);
    s.stands()
}

proof fn test_finds_zero(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Declared,
        s.is_symmetric ==> s.views.len() == 1,
        !s.is_open,
    ensures t.holds(),
{
    State { owner: Owner::Tripped, ..s }
}

proof fn commit_tripped_stands(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Tripped,
        s.mark is Null || s.mark == Mark::Seen(s.end),
    ensures t.holds(),
{
    // T2
    assert(!s.is_doomed);
    s.stands()
}

proof fn commit_tripped_fails(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Tripped,
        s.mark is Seen,
        s.mark != Mark::Seen(s.end),
    ensures t.holds(),
{
    // T3: a flip closed the limit since, and did not see the object.
    assert(s.flip_closed && s.mark->Seen_0 < s.end);
    // T5: no flip has fixed it.
    assert(s.fixed < s.end);
    s.withdrawn()
}

proof fn commit_tripped_finds_undecided(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Tripped,
        s.mark is Undecided,
    ensures t.holds(),
{
    State { owner: Owner::Deciding, ..s }
}

proof fn commit_decides(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Deciding,
        s.mark is Undecided,
    ensures t.holds(),
{
    // T2
    assert(!s.is_doomed);
    State { mark: Mark::Seen(s.end), mark_fill: s.fill, ..s.drained().stands() }
}

/// The flipper decided before.
proof fn commit_finds_decided(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Deciding,
        !(s.mark is Undecided),
    ensures t.holds(),
{
    if s.mark is Null || s.mark == Mark::Seen(s.end) {
        s.stands()
    } else {
        // T3
        assert(s.flip_closed && s.mark->Seen_0 < s.end);
        // T5
        assert(s.fixed < s.end);
        s.withdrawn()
    }
}

// The owner has its memory taken away, and gets other memory.

proof fn detach_begins(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.fill != 0,
    ensures t.holds(),
{
    State { owner: Owner::Detaching, ..s.store(View { is_changing: true, ..s.own() }) }
}

proof fn detach_closes(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Detaching,
    ensures t.holds(),
{
    State { is_open: false, owner: Owner::DetachingClosed, ..s.drained() }
}

proof fn detach_ends_the_flip(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is DetachingClosed,
    ensures t.holds(),
{
    State { mark: Mark::Null, owner: Owner::DetachingEnded, fill: 0, fixed: 0, returned: 0, ..s.drained() }
}

proof fn detach_stores_base(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is DetachingEnded,
    ensures t.holds(),
{
    State { owner: Owner::DetachingBase, ..s.store(View { base: 0, base_fill: 0, ..s.own() }) }
}

proof fn detach_stores_init(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is DetachingBase,
    ensures t.holds(),
{
    State { owner: Owner::DetachingInit, ..s.store(View { init: 0, init_fill: 0, ..s.own() }) }
}

proof fn detach_finishes(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is DetachingInit,
    ensures t.holds(),
{
    State { owner: Owner::Ready, ..s.store(View { is_changing: false, ..s.own() }) }
}

proof fn attach_begins(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is Ready,
        s.fill == 0,
    ensures t.holds(),
{
    let begun = s.store(View { is_changing: true, ..s.own() });
    State { owner: Owner::Attaching, fill: s.fills + 1, fills: s.fills + 1, ..begun }
}

/// The address may be one that an earlier fill had.
proof fn attach_stores_base(s: State, base: int) -> (t: State)
    requires
        s.holds(),
        s.owner is Attaching,
        0 < base,
    ensures t.holds(),
{
    let stored = s.store(View { base, base_fill: s.fill, ..s.own() });
    State { owner: Owner::AttachingBase, start: base, ..stored }
}

proof fn attach_stores_init(s: State, init: int) -> (t: State)
    requires
        s.holds(),
        s.owner is AttachingBase,
        s.start <= init,
    ensures t.holds(),
{
    let stored = s.store(View { init, init_fill: s.fill, ..s.own() });
    State { owner: Owner::AttachingInit, stood: init, ..stored }
}

proof fn attach_finishes(s: State) -> (t: State)
    requires
        s.holds(),
        s.owner is AttachingInit,
    ensures t.holds(),
{
    State { owner: Owner::Ready, ..s.store(View { is_changing: false, ..s.own() }) }
}

// A flip. Others wait for its lock.

proof fn flip_marks(s: State) -> (t: State)
    requires
        s.holds(),
        s.is_flippable,
        s.flipper is Away || s.flipper is Again,
    ensures t.holds(),
{
    let marked = State { flipper: Flipper::Marked, flip_within: s.owner is Reserved, ..s };
    if s.mark is Null {
        State { mark: Mark::Undecided, begun: true, flip_request: 0, ..marked }
    } else {
        State { begun: false, found: s.mark->Seen_0, ..marked }
    }
}

proof fn flip_counts(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Marked,
    ensures t.holds(),
{
    let number = s.requests + 1;
    State { requests: number, flip_request: if s.begun { number } else { s.flip_request }, flipper: Flipper::Counted, ..s }
}

proof fn flip_closes(s: State, number: int) -> (t: State)
    requires
        s.holds(),
        s.flipper is Counted,
        1 <= number <= s.requests,
    ensures t.holds(),
{
    let closed = if number > s.closed { number } else { s.closed };
    State { is_open: false, closed, flip_closed: true, flipper: Flipper::Closed, ..s }
}

proof fn flip_orders(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Closed,
    ensures t.holds(),
{
    let ordered = if s.is_symmetric { s } else { s.drained() };
    State { flipper: Flipper::Ordered, ..ordered }
}

/// At a stop, no barrier is needed: the owner has given way, and what it stored is in memory.
proof fn flip_orders_at_stop(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Closed,
        s.views.len() == 1,
    ensures t.holds(),
{
    State { flipper: Flipper::Ordered, ..s }
}

proof fn flip_looks(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Ordered,
        s.begun,
    ensures t.holds(),
{
    State { found_changing: s.memory().is_changing, flipper: Flipper::Looked, ..s }
}

proof fn flip_reads(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Looked,
    ensures t.holds(),
{
    let found = if s.found_changing { 0 } else { s.memory().init };
    State { found, found_fill: s.memory().init_fill, flipper: Flipper::Read, ..s }
}

proof fn flip_decides(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Read,
    ensures t.holds(),
{
    let decided = State { flipper: Flipper::Decided, ..s };
    if s.mark is Undecided {
        State { mark: if s.found == 0 { Mark::Null } else { Mark::Seen(s.found) }, mark_fill: s.found_fill, ..decided }
    } else {
        State { found: if s.mark is Seen { s.mark->Seen_0 } else { 0 }, ..decided }
    }
}

/// Of a buffer that was flipped before, it keeps what was seen then.
proof fn flip_keeps(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Ordered,
        !s.begun,
    ensures t.holds(),
{
    State { flipper: Flipper::Decided, ..s }
}

proof fn flip_reads_base(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is Decided,
    ensures t.holds(),
{
    State { found_base: s.memory().base, found_base_fill: s.memory().base_fill, flipper: Flipper::BaseRead, ..s }
}

/// The flip lasts: it returns a range.
proof fn flip_returns(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is BaseRead,
        s.found != 0,
        s.mark == Mark::Seen(s.found),
    ensures t.holds(),
{
    // T1: what stands was seen.
    assert(s.stood <= s.found);
    // T6: base and end are of one fill, which is attached.
    assert(s.fill != 0 && s.found_base_fill == s.fill && s.mark_fill == s.fill);
    assert(0 < s.found_base <= s.found);
    State {
        flipper: Flipper::Away,
        fixed: if s.found > s.fixed { s.found } else { s.fixed },
        returned: s.found,
        is_doomed: s.is_doomed || s.flip_within,
        flip_within: false,
        ..s
    }
}

/// It fixed nothing: the owner went on, or there was no memory.
proof fn flip_returns_nothing(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is BaseRead,
        s.begun,
        s.found == 0 || s.mark != Mark::Seen(s.found),
    ensures t.holds(),
{
    // T2: not in the reservation in which it was called.
    assert(!s.flip_within);
    State { flipper: Flipper::Away, ..s }
}

proof fn flip_begins_anew(s: State) -> (t: State)
    requires
        s.holds(),
        s.flipper is BaseRead,
        !s.begun,
        s.mark != Mark::Seen(s.found),
    ensures t.holds(),
{
    State { flipper: Flipper::Again, ..s }
}

} // verus!

fn main() {}
