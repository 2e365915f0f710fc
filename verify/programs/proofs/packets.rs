//! Who has a unit of a packet pool: any number of units, rings, threads and caches, and devices that name any unit at any
//! time.
//!
//! A handle of a unit is a box, or a place in a batch, a cache or the depot; Rust's types move it, and a cache moves it
//! under a lock or in its slot. Sequentially consistent.

use vstd::prelude::*;

verus! {

pub struct State {
    /// How many handles of each unit there are.
    pub handles: Map<int, int>,
    /// The ring that each unit is with; zero for none.
    pub holder: Map<int, int>,
    /// The rings that have found a unit to be with them, and remove it next.
    pub removing: Map<int, int>,
    /// The slots for caches: whether each is claimed, and how many claims there are.
    pub claimed: Map<int, bool>,
    pub claims: Map<int, int>,
}

impl State {
    spec fn holds(self) -> bool {
        &&& self.handles.dom() =~= self.holder.dom()
        &&& self.claimed.dom() =~= self.claims.dom()
        // A unit is with a ring, or has one handle.
        &&& forall|unit: int| #[trigger] self.handles.dom().contains(unit)
            ==> self.handles[unit] == if self.holder[unit] == 0 { 1int } else { 0 }
        &&& forall|ring: int| #[trigger] self.removing.dom().contains(ring)
            ==> ring != 0 && self.holder.dom().contains(self.removing[ring]) && self.holder[self.removing[ring]] == ring
        &&& forall|slot: int| #[trigger] self.claimed.dom().contains(slot)
            ==> self.claims[slot] == if self.claimed[slot] { 1int } else { 0 }
    }
}

proof fn begins(units: Set<int>, slots: Set<int>) -> (t: State)
    ensures t.holds(),
{
    State {
        handles: units.mk_map(|unit: int| 1int),
        holder: units.mk_map(|unit: int| 0int),
        removing: Map::empty(),
        claimed: slots.mk_map(|slot: int| false),
        claims: slots.mk_map(|slot: int| 0int),
    }
}

/// The handle of a unit is given up to the owner of a ring, who submits it.
proof fn submit(s: State, unit: int, ring: int) -> (t: State)
    requires
        s.holds(),
        s.handles.dom().contains(unit) && s.handles[unit] >= 1,
        ring != 0 && !s.removing.dom().contains(ring),
    ensures t.holds(),
{
    // No other ring has it.
    assert(s.holder[unit] == 0);
    State { handles: s.handles.insert(unit, s.handles[unit] - 1), holder: s.holder.insert(unit, ring), ..s }
}

/// The device names a unit, and the owner of the ring finds that the ring has it.
proof fn complete_loads(s: State, unit: int, ring: int) -> (t: State)
    requires
        s.holds(),
        s.holder.dom().contains(unit),
        ring != 0 && !s.removing.dom().contains(ring),
        s.holder[unit] == ring,
    ensures t.holds(),
{
    State { removing: s.removing.insert(ring, unit), ..s }
}

/// The unit has a handle again.
proof fn complete_stores(s: State, ring: int) -> (t: State)
    requires
        s.holds(),
        s.removing.dom().contains(ring),
    ensures t.holds(),
{
    let unit = s.removing[ring];
    // Nothing in the program had it.
    assert(s.handles[unit] == 0);
    State {
        handles: s.handles.insert(unit, s.handles[unit] + 1),
        holder: s.holder.insert(unit, 0),
        removing: s.removing.remove(ring),
        ..s
    }
}

/// A cache claims a slot that it finds free.
proof fn claim(s: State, slot: int) -> (t: State)
    requires
        s.holds(),
        s.claimed.dom().contains(slot) && !s.claimed[slot],
    ensures t.holds(),
{
    // No other cache has it.
    assert(s.claims[slot] == 0);
    State { claimed: s.claimed.insert(slot, true), claims: s.claims.insert(slot, s.claims[slot] + 1), ..s }
}

proof fn release(s: State, slot: int) -> (t: State)
    requires
        s.holds(),
        s.claims.dom().contains(slot) && s.claims[slot] >= 1,
    ensures t.holds(),
{
    State { claimed: s.claimed.insert(slot, false), claims: s.claims.insert(slot, s.claims[slot] - 1), ..s }
}

} // verus!

fn main() {}
