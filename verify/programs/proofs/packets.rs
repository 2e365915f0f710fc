//! Who has a unit of a packet pool: any number of units, rings, threads and caches, and devices that name any unit at any
//! time.
//!
//! A handle of a unit is a box, or a place in a batch or a burst; Rust's types move it. The depot and the caches have numbers of
//! units, which are copied: the depot under its lock, a cache by the thread that has its slot. Sequentially consistent.

use vstd::prelude::*;

verus! {

pub struct Unit {
    /// How many handles of it there are.
    pub handles: int,
    /// The ring that it is with; zero for none.
    pub ring: int,
    /// The slot whose numbers its number was copied to last, or zero for the depot; and the place there. Nothing looks at these.
    pub slot: int,
    pub place: int,
}

pub struct State {
    pub units: Map<int, Unit>,
    /// The numbers in the depot, and in each slot for a cache. A slot is any number but zero.
    pub depot: Seq<int>,
    pub slots: Map<int, Seq<int>>,
    /// The rings that have found a unit to be with them, and remove it next.
    pub removing: Map<int, int>,
    /// Whether each slot is claimed, and how many claims there are.
    pub claimed: Map<int, bool>,
    pub claims: Map<int, int>,
}

impl State {
    spec fn has(self, unit: int) -> bool {
        self.units.dom().contains(unit)
    }

    spec fn is_slot(self, slot: int) -> bool {
        self.slots.dom().contains(slot)
    }

    /// A number of the unit is where it was copied to last.
    spec fn is_free(self, it: Unit, unit: int) -> bool {
        if it.slot == 0 {
            0 <= it.place < self.depot.len() && self.depot[it.place] == unit
        } else {
            self.is_slot(it.slot) && 0 <= it.place < self.slots[it.slot].len() && self.slots[it.slot][it.place] == unit
        }
    }

    spec fn is_number(self, unit: int, slot: int, place: int) -> bool {
        self.has(unit) && self.units[unit].handles == 0 && self.units[unit].ring == 0 && self.units[unit].slot == slot
            && self.units[unit].place == place
    }

    spec fn theorems(self) -> bool {
        // P1: no unit is lost: it has a handle, is with a ring, or its number is in the depot or a cache.
        &&& forall|unit: int| #[trigger] self.has(unit) ==> self.units[unit].handles == 1 || self.units[unit].ring != 0
            || self.is_free(self.units[unit], unit)
        // P1: no unit is twice in any of these.
        &&& forall|unit: int| #[trigger] self.has(unit) ==> 0 <= self.units[unit].handles <= 1
            && (self.units[unit].ring != 0 ==> self.units[unit].handles == 0)
        &&& forall|place: int| 0 <= place < self.depot.len() ==> self.is_number(#[trigger] self.depot[place], 0, place)
        &&& forall|slot: int, place: int| #[trigger] self.is_slot(slot) && 0 <= place < self.slots[slot].len()
            ==> self.is_number(#[trigger] self.slots[slot][place], slot, place)
        // P2: a slot has one cache.
        &&& forall|slot: int| #[trigger] self.is_slot(slot) ==> self.claims[slot] == if self.claimed[slot] { 1int } else { 0 }
    }

    spec fn holds(self) -> bool {
        &&& self.theorems()
        &&& !self.is_slot(0)
        &&& forall|ring: int| #[trigger] self.removing.dom().contains(ring)
            ==> ring != 0 && self.has(self.removing[ring]) && self.units[self.removing[ring]].ring == ring
    }

    spec fn with(self, unit: int, it: Unit) -> State {
        State { units: self.units.insert(unit, it), ..self }
    }
}

proof fn begins(slots: Set<int>) -> (t: State)
    requires !slots.contains(0),
    ensures t.holds(),
{
    State {
        units: Map::empty(),
        depot: Seq::empty(),
        slots: slots.mk_map(|slot: int| Seq::empty()),
        removing: Map::empty(),
        claimed: slots.mk_map(|slot: int| false),
        claims: slots.mk_map(|slot: int| 0int),
    }
}

/// The pool has one more unit, which is in the depot. It makes all when it is created.
proof fn make(s: State, unit: int) -> (t: State)
    requires
        s.holds(),
        !s.has(unit),
    ensures t.holds(),
{
    let made = s.with(unit, Unit { handles: 0, ring: 0, slot: 0, place: s.depot.len() as int });
    State { depot: s.depot.push(unit), ..made }
}

// The depot, under its lock.

proof fn take(s: State) -> (t: State)
    requires
        s.holds(),
        s.depot.len() > 0,
    ensures t.holds(),
{
    let unit = s.depot.last();
    let it = s.units[unit];
    // P1: nothing else has it.
    assert(it.handles == 0 && it.ring == 0);
    State { depot: s.depot.subrange(0, s.depot.len() - 1), ..s.with(unit, Unit { handles: it.handles + 1, ..it }) }
}

/// The handle of a unit is given up.
proof fn give(s: State, unit: int) -> (t: State)
    requires
        s.holds(),
        s.has(unit) && s.units[unit].handles >= 1,
    ensures t.holds(),
{
    let it = s.units[unit];
    let given = s.with(unit, Unit { handles: it.handles - 1, slot: 0, place: s.depot.len() as int, ..it });
    State { depot: s.depot.push(unit), ..given }
}

/// A cache copies the last numbers of the depot behind its own.
proof fn refill(s: State, slot: int, count: int) -> (t: State)
    requires
        s.holds(),
        s.is_slot(slot) && s.claims[slot] >= 1,
        0 <= count <= s.depot.len(),
    ensures t.holds(),
{
    let left = s.depot.len() - count;
    let kept = s.slots[slot].len();
    let taken = s.depot.subrange(left, s.depot.len() as int);
    State {
        depot: s.depot.subrange(0, left),
        slots: s.slots.insert(slot, s.slots[slot].add(taken)),
        units: s.units.map_values(
            |it: Unit| if it.handles == 0 && it.ring == 0 && it.slot == 0 && it.place >= left {
                Unit { slot, place: it.place - left + kept, ..it }
            } else {
                it
            },
        ),
        ..s
    }
}

/// A cache copies its older numbers, or all, to the depot, and the others to where these were.
proof fn flush(s: State, slot: int, older: int) -> (t: State)
    requires
        s.holds(),
        s.is_slot(slot) && s.claims[slot] >= 1,
        0 <= older <= s.slots[slot].len(),
    ensures t.holds(),
{
    let free = s.depot.len();
    let numbers = s.slots[slot];
    State {
        depot: s.depot.add(numbers.subrange(0, older)),
        slots: s.slots.insert(slot, numbers.subrange(older, numbers.len() as int)),
        units: s.units.map_values(
            |it: Unit| if it.handles == 0 && it.ring == 0 && it.slot == slot {
                if it.place < older {
                    Unit { slot: 0, place: it.place + free, ..it }
                } else {
                    Unit { place: it.place - older, ..it }
                }
            } else {
                it
            },
        ),
        ..s
    }
}

// Caches.

/// A cache makes a handle of its last number, which it counts no more.
proof fn pop(s: State, slot: int) -> (t: State)
    requires
        s.holds(),
        s.is_slot(slot) && s.claims[slot] >= 1,
        s.slots[slot].len() > 0,
    ensures t.holds(),
{
    let numbers = s.slots[slot];
    let unit = numbers.last();
    let it = s.units[unit];
    // P1: nothing else has it.
    assert(it.handles == 0 && it.ring == 0);
    let popped = s.with(unit, Unit { handles: it.handles + 1, ..it });
    State { slots: s.slots.insert(slot, numbers.subrange(0, numbers.len() - 1)), ..popped }
}

proof fn push(s: State, slot: int, unit: int) -> (t: State)
    requires
        s.holds(),
        s.is_slot(slot) && s.claims[slot] >= 1,
        s.has(unit) && s.units[unit].handles >= 1,
    ensures t.holds(),
{
    let numbers = s.slots[slot];
    let it = s.units[unit];
    let pushed = s.with(unit, Unit { handles: it.handles - 1, slot, place: numbers.len() as int, ..it });
    State { slots: s.slots.insert(slot, numbers.push(unit)), ..pushed }
}

/// A cache claims a slot that it finds free.
proof fn claim(s: State, slot: int) -> (t: State)
    requires
        s.holds(),
        s.is_slot(slot) && !s.claimed[slot],
    ensures t.holds(),
{
    // P2: no other cache has it.
    assert(s.claims[slot] == 0);
    State { claimed: s.claimed.insert(slot, true), claims: s.claims.insert(slot, s.claims[slot] + 1), ..s }
}

proof fn release(s: State, slot: int) -> (t: State)
    requires
        s.holds(),
        s.is_slot(slot) && s.claims[slot] >= 1,
    ensures t.holds(),
{
    State { claimed: s.claimed.insert(slot, false), claims: s.claims.insert(slot, s.claims[slot] - 1), ..s }
}

// Rings.

/// The handle of a unit is given up to the owner of a ring, who submits it.
proof fn submit(s: State, unit: int, ring: int) -> (t: State)
    requires
        s.holds(),
        s.has(unit) && s.units[unit].handles >= 1,
        ring != 0 && !s.removing.dom().contains(ring),
    ensures t.holds(),
{
    let it = s.units[unit];
    // P1: no other ring has it.
    assert(it.ring == 0);
    s.with(unit, Unit { handles: it.handles - 1, ring, ..it })
}

/// The device names a unit, and the owner of the ring finds that the ring has it.
proof fn complete_loads(s: State, unit: int, ring: int) -> (t: State)
    requires
        s.holds(),
        s.has(unit),
        ring != 0 && !s.removing.dom().contains(ring),
        s.units[unit].ring == ring,
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
    let it = s.units[unit];
    // P1: nothing in the program had it.
    assert(it.handles == 0);
    State { removing: s.removing.remove(ring), ..s.with(unit, Unit { handles: it.handles + 1, ring: 0, ..it }) }
}

} // verus!

fn main() {}
