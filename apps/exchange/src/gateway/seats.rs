//! The memory of orders that cross threads: from a pool, from a general allocator, and from an array by hand.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use rtrb::{Consumer, Producer, RingBuffer};
use tripoint::{ArenaVm, PoolBox, Returns, UnitLayout};

use super::{Seats, VACANT, Vacant};
use crate::places::stored::{Pointer, Units};

/// Units of a pool, which go back to it in batches.
pub struct PoolSeats<'p> {
    pool: &'p Units<'p>,
    returns: Returns<'p, &'p ArenaVm, UnitLayout>,
}

impl<'p> PoolSeats<'p> {
    /// Seats of this pool.
    pub const fn new(pool: &'p Units<'p>) -> Self {
        Self { pool, returns: pool.returns() }
    }
}

// SAFETY: a box that was made into a pointer owns its memory until a box is made of that again.
unsafe impl<'p> Seats for PoolSeats<'p> {
    type Seat = PoolBox<'p, Vacant, Units<'p>>;

    #[inline(always)]
    fn open(seat: Self::Seat) -> Pointer {
        PoolBox::into_raw(seat).cast()
    }

    #[inline(always)]
    unsafe fn free(&mut self, seat: Pointer) {
        // SAFETY: the pointer of a box of this pool, of this type, as the caller says; any bytes are vacant.
        self.returns.free_box(unsafe { PoolBox::<Vacant, _>::from_raw_in(seat.cast(), self.pool) });
    }
}

/// Memory of a general allocator.
pub struct HeapSeats<A: GlobalAlloc>(pub A);

/// A seat of a general allocator.
pub struct HeapSeat<A: GlobalAlloc> {
    memory: Pointer,
    allocator: A,
}

const LAYOUT: Layout = Layout::new::<Vacant>();

impl<A: GlobalAlloc> HeapSeat<A> {
    /// A new seat; `None` if the allocator has no memory.
    #[inline(always)]
    pub fn new(allocator: A) -> Option<Self> {
        // SAFETY: an order has a size.
        let memory = NonNull::new(unsafe { allocator.alloc(LAYOUT) })?;
        Some(Self { memory, allocator })
    }
}

// SAFETY: the memory is this value's own, and a global allocator may be called by any thread.
unsafe impl<A: GlobalAlloc + Send> Send for HeapSeat<A> {}

impl<A: GlobalAlloc> Drop for HeapSeat<A> {
    fn drop(&mut self) {
        // SAFETY: this allocator allocated it with this layout; it is freed once, because a seat that is opened is not dropped.
        unsafe { self.allocator.dealloc(self.memory.as_ptr(), LAYOUT) };
    }
}

// SAFETY: a seat owns its memory, and gives it up when it is opened.
unsafe impl<A: GlobalAlloc + Send> Seats for HeapSeats<A> {
    type Seat = HeapSeat<A>;

    #[inline(always)]
    fn open(seat: HeapSeat<A>) -> Pointer {
        ManuallyDrop::new(seat).memory
    }

    #[inline(always)]
    unsafe fn free(&mut self, seat: Pointer) {
        // SAFETY: a seat that was opened, so of this kind of allocator with this layout, as the caller says.
        unsafe { self.0.dealloc(seat.as_ptr(), LAYOUT) };
    }
}

/// The gateway's part of an array: places that are free, and those that come back.
pub struct HandGate {
    free: Vec<HandSeat>,
    back: Consumer<HandSeat>,
    /// Allocations until it looks at what came back.
    until_look: u32,
    _array: Vec<Line>,
}

/// A place of the array: a cache line, as a unit of a pool is.
#[derive(Clone)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "memory")] Vacant);

/// The other thread's part: what it frees goes back by a ring.
pub struct HandSeats {
    back: Producer<HandSeat>,
}

/// A place of the array.
pub struct HandSeat(Pointer);

// SAFETY: the place is this value's own.
unsafe impl Send for HandSeat {}

/// The gateway looks that often at what came back.
const LOOK: u32 = 32;

/// An array of that many places, as one writes it by hand: a list of free places on the gateway's
/// thread, and a ring with room for all of them by which they come back.
///
/// The gateway's part has the array, and has to live as long as the other.
pub fn by_hand(places: usize) -> (HandGate, HandSeats) {
    let mut array = vec![Line(VACANT); places];
    // The first place is taken first.
    let free = array.iter_mut().rev().map(|place| HandSeat(NonNull::from(place).cast())).collect();
    let (to_gate, back) = RingBuffer::new(places);
    (HandGate { free, back, until_look: LOOK, _array: array }, HandSeats { back: to_gate })
}

impl HandGate {
    /// Takes a place, one that was freed not long ago if there is one.
    #[inline(always)]
    pub fn seat(&mut self) -> Option<HandSeat> {
        self.until_look -= 1;
        if self.until_look == 0 || self.free.is_empty() {
            self.until_look = LOOK;
            while let Ok(seat) = self.back.pop() {
                self.free.push(seat);
            }
        }
        self.free.pop()
    }
}

// SAFETY: a place is in one list, in the ring, or used by one owner.
unsafe impl Seats for HandSeats {
    type Seat = HandSeat;

    #[inline(always)]
    fn open(seat: HandSeat) -> Pointer {
        seat.0
    }

    #[inline(always)]
    unsafe fn free(&mut self, seat: Pointer) {
        // There is room for all places.
        let _ = self.back.push(HandSeat(seat));
    }
}
