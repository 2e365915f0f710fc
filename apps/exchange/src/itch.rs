//! Messages of ITCH 5.0, read where they stand (design/exchange.md `.itch`).
//!
//! Nasdaq TotalView-ITCH 5.0, chapter 4. Numbers are big-endian; a price is in units of 0.0001. Every message begins with
//! its type, the stock's locate code, a tracking number and the nanoseconds since midnight.

use core::fmt;

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The length of each type of message, its first byte included.
pub const LENGTHS: [(u8, usize); 23] = [
    (b'S', 12),
    (b'R', 39),
    (b'H', 25),
    (b'Y', 20),
    (b'L', 26),
    (b'V', 35),
    (b'W', 12),
    (b'K', 28),
    (b'J', 35),
    (b'h', 21),
    (b'A', 36),
    (b'F', 40),
    (b'E', 31),
    (b'C', 36),
    (b'X', 23),
    (b'D', 19),
    (b'U', 35),
    (b'P', 44),
    (b'Q', 40),
    (b'B', 19),
    (b'I', 50),
    (b'N', 20),
    (b'O', 48),
];

/// For each first byte the length of such a message; zero if there is none.
const LENGTH_OF: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut at = 0;
    while at < LENGTHS.len() {
        lengths[LENGTHS[at].0 as usize] = LENGTHS[at].1 as u8;
        at += 1;
    }
    lengths
};

/// The length of a message of this type, if there is such a type.
pub const fn length_of(kind: u8) -> Option<usize> {
    match LENGTH_OF[kind as usize] {
        0 => None,
        length => Some(length as usize),
    }
}

/// What every message begins with.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    pub kind: u8,
    pub locate: U16,
    pub tracking: U16,
    pub time: [u8; 6],
}

impl Header {
    /// Nanoseconds since midnight.
    #[inline]
    pub const fn nanoseconds(&self) -> u64 {
        let [a, b, c, d, e, f] = self.time;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

/// `S`: the day begins or ends.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SystemEvent {
    pub header: Header,
    pub event: u8,
}

/// `R`: a stock, and the locate code that it has today.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Directory {
    pub header: Header,
    pub stock: [u8; 8],
    pub rest: [u8; 20],
}

/// `A`, and the first part of `F`: an order is in the book.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Add {
    pub header: Header,
    pub order: U64,
    pub side: u8,
    pub shares: U32,
    pub stock: [u8; 8],
    pub price: U32,
}

/// `F`: an order is in the book, and whose it is.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct AttributedAdd {
    pub add: Add,
    pub attribution: [u8; 4],
}

/// `E`, and the first part of `C`: shares of an order were traded at its price.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Executed {
    pub header: Header,
    pub order: U64,
    pub shares: U32,
    pub trade: U64,
}

/// `C`: shares of an order were traded at another price.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ExecutedAtPrice {
    pub executed: Executed,
    pub printable: u8,
    pub price: U32,
}

/// `X`: an order lost shares.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Cancel {
    pub header: Header,
    pub order: U64,
    pub shares: U32,
}

/// `D`: an order left the book.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Delete {
    pub header: Header,
    pub order: U64,
}

/// `U`: an order took the place of another, on the same side of the same book.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Replace {
    pub header: Header,
    pub old: U64,
    pub new: U64,
    pub shares: U32,
    pub price: U32,
}

/// `P`: a trade with an order that no book shows.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Trade {
    pub header: Header,
    pub order: U64,
    pub side: u8,
    pub shares: U32,
    pub stock: [u8; 8],
    pub price: U32,
    pub trade: U64,
}

/// `Q`: a cross, all of whose trades are at one price.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Cross {
    pub header: Header,
    pub shares: U64,
    pub stock: [u8; 8],
    pub price: U32,
    pub trade: U64,
    pub cross: u8,
}

/// `B`: a trade is void.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Broken {
    pub header: Header,
    pub trade: U64,
}

/// A message, by what it does to a book.
pub enum Message<'m> {
    System(&'m SystemEvent),
    Directory(&'m Directory),
    Add(&'m Add, [u8; 4]),
    /// `E`, and `C` without what it says of the price.
    Executed(&'m Executed),
    Cancel(&'m Cancel),
    Delete(&'m Delete),
    Replace(&'m Replace),
    Trade(&'m Trade),
    Cross(&'m Cross),
    Broken(&'m Broken),
    /// Of another type of the specification, which says nothing of a book or a trade.
    Other,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    Empty,
    Type(u8),
    Length { kind: u8, is: usize, must: usize },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("a message without bytes before the end"),
            Self::Type(kind) => write!(f, "ITCH 5.0 has no messages of type {:?}", char::from(kind)),
            Self::Length { kind, is, must } => {
                write!(f, "a message of type {} has {is} bytes, and not {must}", char::from(kind))
            }
        }
    }
}

/// Reads a message. Its length is that of its type, so that no field is cut.
///
/// # Errors
/// If there is no such type, or its length is another.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let &[kind, ..] = bytes else { return Err(Malformed::Empty) };
    let must = usize::from(LENGTH_OF[usize::from(kind)]);
    if must != bytes.len() {
        return Err(if must == 0 {
            Malformed::Type(kind)
        } else {
            Malformed::Length { kind, is: bytes.len(), must }
        });
    }
    // The length was checked above, and is that of the type: `None` is of no message.
    let message = match kind {
        b'A' => whole(bytes).map(|add| Message::Add(add, *b"    ")),
        b'F' => whole(bytes).map(|add: &AttributedAdd| Message::Add(&add.add, add.attribution)),
        b'E' => whole(bytes).map(Message::Executed),
        b'C' => whole(bytes).map(|at: &ExecutedAtPrice| Message::Executed(&at.executed)),
        b'X' => whole(bytes).map(Message::Cancel),
        b'D' => whole(bytes).map(Message::Delete),
        b'U' => whole(bytes).map(Message::Replace),
        b'P' => whole(bytes).map(Message::Trade),
        b'Q' => whole(bytes).map(Message::Cross),
        b'B' => whole(bytes).map(Message::Broken),
        b'S' => whole(bytes).map(Message::System),
        b'R' => whole(bytes).map(Message::Directory),
        _ => Some(Message::Other),
    };
    message.ok_or(Malformed::Type(kind))
}

/// All of the bytes as one object.
#[inline(always)]
fn whole<T: FromBytes + Immutable + KnownLayout + Unaligned>(bytes: &[u8]) -> Option<&T> {
    T::ref_from_bytes(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (design/exchange.md `.req.itch`)
    #[test]
    fn every_layout_has_the_length_of_its_type() {
        for (kind, length) in LENGTHS {
            let mut bytes = vec![kind; length];
            assert!(parse(&bytes).is_ok_and(|message| {
                matches!(message, Message::Other) != b"SRAFECXDUPQB".contains(&kind)
            }));
            bytes.pop();
            let malformed = Malformed::Length { kind, is: length - 1, must: length };
            assert_eq!(parse(&bytes).err(), Some(malformed));
        }
        assert_eq!(parse(&[]).err(), Some(Malformed::Empty));
        let unknown = (0..=255).filter(|kind| parse(&[*kind; 20]).err() == Some(Malformed::Type(*kind)));
        assert_eq!(unknown.count(), 256 - LENGTHS.len());
    }

    /// The fields of an order added, by the offsets of the specification.
    #[test]
    fn fields_are_where_the_specification_has_them() {
        let bytes: Vec<u8> = (0..40).map(|at| if at == 0 { b'F' } else { at }).collect();
        let Ok(Message::Add(add, attribution)) = parse(&bytes) else { panic!("an order") };
        assert_eq!(add.header.locate.get(), 0x0102);
        assert_eq!(add.header.nanoseconds(), 0x0506_0708_090a);
        assert_eq!(add.order.get(), 0x0b0c_0d0e_0f10_1112);
        assert_eq!((add.side, add.shares.get()), (0x13, 0x1415_1617));
        assert_eq!((add.stock[0], add.price.get()), (0x18, 0x2021_2223));
        assert_eq!(attribution, [0x24, 0x25, 0x26, 0x27]);
    }
}
