//! Why books do not do what a message says.

use core::fmt;

/// Why a message cannot be true of these books. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no order with this number.
    UnknownOrder(u64),
    /// There is an order with this number already.
    DuplicateOrder(u64),
    /// The order is of another stock than the message.
    OtherStock { order: u64, is: u16, says: u16 },
    /// An order, or a part of one, without shares.
    NoShares(u64),
    /// More shares than the order has.
    TooManyShares { order: u64, has: u32, says: u32 },
    /// Neither a buy nor a sell.
    NoSide { order: u64, says: u8 },
    /// As many orders as there is memory for.
    OrdersFull(usize),
    /// As many levels as there is memory for.
    LevelsFull(usize),
    /// The home of orders has no memory.
    NoMemory,
}

impl Refused {
    /// The same, of an order that has another number where the message comes from.
    pub const fn of_order(self, number: u64) -> Self {
        match self {
            Self::UnknownOrder(_) => Self::UnknownOrder(number),
            Self::DuplicateOrder(_) => Self::DuplicateOrder(number),
            Self::NoShares(_) => Self::NoShares(number),
            Self::OtherStock { is, says, .. } => Self::OtherStock { order: number, is, says },
            Self::TooManyShares { has, says, .. } => Self::TooManyShares { order: number, has, says },
            Self::NoSide { says, .. } => Self::NoSide { order: number, says },
            Self::OrdersFull(_) | Self::LevelsFull(_) | Self::NoMemory => self,
        }
    }

    /// Its name: one word for a kind of refusal.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownOrder(_) => "unknown-order",
            Self::DuplicateOrder(_) => "duplicate-order",
            Self::OtherStock { .. } => "other-stock",
            Self::NoShares(_) => "no-shares",
            Self::TooManyShares { .. } => "too-many-shares",
            Self::NoSide { .. } => "no-side",
            Self::OrdersFull(_) => "orders-full",
            Self::LevelsFull(_) => "levels-full",
            Self::NoMemory => "no-memory",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match *self {
            Self::UnknownOrder(id) => write!(f, "no order {id} is live; a capture must begin with its day"),
            Self::DuplicateOrder(id) => write!(f, "order {id} is live already"),
            Self::OtherStock { order, is, says } => {
                write!(f, "order {order} is of the stock with locate code {is}, the message says {says}")
            }
            Self::NoShares(id) => write!(f, "order {id} has, or loses, no shares"),
            Self::TooManyShares { order, has, says } => {
                write!(f, "order {order} has {has} shares, and cannot lose {says}")
            }
            Self::NoSide { order, says } => {
                write!(f, "order {order} is on side {:?}, and not B or S", char::from(says))
            }
            Self::OrdersFull(most) => {
                write!(f, "{most} orders are live, and there is memory for no more (see --room)")
            }
            Self::LevelsFull(most) => {
                write!(f, "there is memory for {most} levels, and no more (see --levels)")
            }
            Self::NoMemory => f.write_str(
                "the home of the orders has no memory: fewer orders need less, or limits may be raised",
            ),
        }
    }
}
