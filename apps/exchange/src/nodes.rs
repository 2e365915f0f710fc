//! What lives in a home: orders and levels, linked by their names.

/// Which side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Side {
    Buy,
    Sell,
}

impl Side {
    /// Both, in the order of their numbers.
    pub const BOTH: [Self; 2] = [Self::Buy, Self::Sell];

    /// How good a price is on this side: the higher, the better. The same function gives the price of a rank.
    #[inline(always)]
    pub const fn rank(self, price: u32) -> u32 {
        match self {
            Self::Buy => price,
            Self::Sell => !price,
        }
    }
}

/// An order in a book. `N` is what orders and levels are called.
#[derive(Clone, Copy, Debug)]
pub struct Order<N> {
    pub id: u64,
    /// When it was added, in nanoseconds since midnight.
    pub entered: u64,
    pub earlier: Option<N>,
    pub later: Option<N>,
    pub level: N,
    pub shares: u32,
    pub attribution: [u8; 4],
    pub locate: u16,
    pub side: Side,
}

impl<N> Order<N> {
    /// An order that stands where no order has been yet.
    pub const fn filler(level: N) -> Self {
        Self {
            id: 0,
            entered: 0,
            earlier: None,
            later: None,
            level,
            shares: 0,
            attribution: [0; 4],
            locate: 0,
            side: Side::Buy,
        }
    }
}

/// A price that has orders.
#[derive(Clone, Copy, Debug)]
pub struct Level<N> {
    pub first: Option<N>,
    pub last: Option<N>,
    pub shares: u64,
    pub rank: u32,
    pub orders: u32,
}

impl<N> Level<N> {
    /// A level that stands where no level has been yet.
    pub const fn filler() -> Self {
        Self { first: None, last: None, shares: 0, rank: 0, orders: 0 }
    }
}

const _: () = assert!(size_of::<Order<core::ptr::NonNull<u8>>>() <= 64);
const _: () = assert!(size_of::<Level<core::ptr::NonNull<u8>>>() <= 48);
