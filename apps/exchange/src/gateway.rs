//! Orders whose memory one thread allocates and another frees (design/exchange.md `.engine.gateway`).
//!
//! The gateway takes a seat for each order that may rest, and hands it over with the request. The engine puts the order
//! into it, and frees it when the order ends, on its own thread.

pub mod seats;

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use rtrb::{Producer, PushError};

use crate::book::{Level, Order};
use crate::homes::PointedOrder;
use crate::places::stored::Pointer;
use crate::places::{NoMemory, Place, Places};

/// Memory for an order, without one.
pub type Vacant = [MaybeUninit<u64>; size_of::<PointedOrder>() / size_of::<u64>()];

/// Memory without an order.
pub const VACANT: Vacant = [MaybeUninit::uninit(); size_of::<Vacant>() / size_of::<u64>()];

const _: () = assert!(
    size_of::<Vacant>() == size_of::<PointedOrder>() && align_of::<Vacant>() == align_of::<PointedOrder>()
);

/// Frees seats on the thread of the engine.
///
/// # Safety
/// - [`Seats::open`] gives memory for a [`Vacant`] that nothing else uses until it is given to [`Seats::free`].
pub unsafe trait Seats {
    /// A seat on its way. It frees itself if it does not arrive.
    type Seat: Send;

    /// The memory of a seat.
    fn open(seat: Self::Seat) -> Pointer;

    /// Frees a seat.
    ///
    /// # Safety
    /// - The pointer is of [`Seats::open`], and was not freed since. What is in it is not used any more.
    unsafe fn free(&mut self, seat: Pointer);
}

/// The home of orders that are put into seats.
pub struct Handed<S: Seats> {
    seats: S,
    /// The seat that came with the request.
    seat: Option<S::Seat>,
}

impl<S: Seats> Handed<S> {
    /// A home without a seat.
    pub const fn new(seats: S) -> Self {
        Self { seats, seat: None }
    }

    /// Takes the seat of a request.
    #[inline(always)]
    pub fn hand(&mut self, seat: Option<S::Seat>) {
        self.release();
        self.seat = seat;
    }

    /// Frees the seat of a request that did not need it.
    #[inline(always)]
    pub fn release(&mut self) {
        if let Some(seat) = self.seat.take() {
            // SAFETY: it was just opened, and nothing is in it.
            unsafe { self.seats.free(S::open(seat)) };
        }
    }
}

// SAFETY: a name is the address of a seat that was opened, and no two open ones have one. It stays where it is until it is
// freed, wherever this is moved.
unsafe impl<S: Seats> Place<PointedOrder> for Handed<S> {
    type Name = Pointer;

    #[inline(always)]
    fn put(&mut self, object: PointedOrder) -> Result<Pointer, NoMemory> {
        let name = S::open(self.seat.take().ok_or(NoMemory)?);
        // SAFETY: memory of the size and alignment of an order, which nothing else uses.
        unsafe { name.cast().write(object) };
        Ok(name)
    }

    #[inline(always)]
    unsafe fn get(&self, name: Pointer) -> &PointedOrder {
        // SAFETY: the address of a live order, as the caller says; while `self` is borrowed, nothing writes to it, because
        // that borrows `self` mutably.
        unsafe { name.cast().as_ref() }
    }

    #[inline(always)]
    unsafe fn get_mut(&mut self, name: Pointer) -> &mut PointedOrder {
        // SAFETY: the address of a live order, as the caller says; while `self` is borrowed mutably, nothing else reads or
        // writes it.
        unsafe { name.cast().as_mut() }
    }

    #[inline(always)]
    unsafe fn take(&mut self, name: Pointer) {
        // SAFETY: a seat that was opened for a live order, which the caller gives up; an order has nothing to drop.
        unsafe { self.seats.free(name) };
    }
}

/// Orders in seats, and levels in a home of the engine's thread.
pub struct Received<S, L>(PhantomData<(S, L)>);

impl<S: Seats, L: Place<Level<Pointer>, Name = Pointer>> Places for Received<S, L> {
    type Name = Pointer;
    type Orders = Handed<S>;
    type Levels = L;
    const END_TOGETHER: bool = false;
}

const _: () = assert!(!core::mem::needs_drop::<Order<Pointer>>());

/// Requests on their way from the gateway.
pub const SLIPS: usize = 1_024;

/// Sends a request as soon as there is room, and does something else until then. Returns false if the other end is gone.
#[inline]
pub fn send<T>(to: &mut Producer<Slip<T>>, mut slip: Slip<T>, mut meanwhile: impl FnMut()) -> bool {
    while let Err(PushError::Full(again)) = to.push(slip) {
        if to.is_abandoned() {
            return false;
        }
        slip = again;
        meanwhile();
    }
    true
}

/// The longest message.
const MOST: usize = 50;

/// A request on its way from the gateway, with the seat of the order that it may put into the book.
pub struct Slip<T> {
    bytes: [u8; MOST],
    len: u8,
    pub seat: Option<T>,
}

impl<T> Slip<T> {
    /// A request. What is longer than any message is cut, and so is refused.
    #[inline]
    pub fn new(message: &[u8], seat: Option<T>) -> Self {
        let (mut bytes, len) = ([0; MOST], message.len().min(MOST));
        bytes[..len].copy_from_slice(&message[..len]);
        Self { bytes, len: len as u8, seat }
    }

    /// What is asked for.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether a request may put an order into the book, and so needs a seat.
    #[inline]
    pub const fn needs_seat(message: &[u8]) -> bool {
        matches!(message, [b'A' | b'F' | b'C', ..])
    }
}
