//! Lines of LOBSTER: what a message file says, read as messages of ITCH, and what an orderbook file has (design/exchange.md
//! `.lobster`).
//!
//! A line is a time in seconds, a type, the number of an order, shares, a price in units of 0.0001 and a direction, with
//! commas between them. Fields behind these are skipped.

use core::fmt;

use zerocopy::big_endian::{U16, U32, U64};

use crate::itch::{Add, Cancel, Cross, Delete, Executed, Header, Message, Trade};
use crate::nodes::Side;

/// Numbers of orders are below this. The bits above say of which input an order is, and which are no order of a file.
pub const ORDERS: u64 = 1 << 47;

/// What stands between a line and the line of the orderbook file that belongs to it.
pub const JOINT: u8 = b'|';

/// A price that stands in an orderbook file where there is no level.
const NO_PRICE: &[u8] = b"9999999999";

/// What a field is called.
const FIELDS: [&str; 6] =
    ["the time", "the type", "the number of the order", "the size", "the price", "the direction"];

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLine {
    /// It has too few fields.
    Fields(usize),
    /// A field, from zero, is not what it should be.
    Field(usize),
    /// The line of the orderbook file ends within a level with this field, or this one is no number.
    Row(usize),
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fields(fields) => write!(
                f,
                "{fields} fields, and a line of LOBSTER has six: time, type, order, size, price, direction"
            ),
            Self::Field(field) => {
                let must = match field {
                    0 => "seconds since midnight, as 34200.017459617",
                    1 => "from 1 to 7",
                    2 => "a number below 2^47",
                    5 => "1 or -1",
                    _ => "a whole number of 32 bits",
                };
                write!(f, "field {}, {}, has to be {must}", field + 1, FIELDS.get(field).unwrap_or(&"it"))
            }
            Self::Row(field) => write!(
                f,
                "the line of the orderbook file: its field {field} is no number of 32 bits, or ends it within a level; a \
                 level has four fields: ask price, ask size, bid price, bid size"
            ),
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    New,
    Cancel,
    Delete,
    Execution,
    /// Of an order that no book shows.
    Hidden,
    Cross,
    Halt,
}

/// A line of a message file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Nanoseconds since midnight.
    pub time: u64,
    pub kind: Kind,
    pub order: u64,
    pub shares: u32,
    pub price: u32,
    /// The side of the order.
    pub side: Side,
}

/// Reads a line.
///
/// # Errors
/// If it is none.
pub fn parse(bytes: &[u8]) -> Result<Line, BadLine> {
    let mut fields = bytes.split(|&byte| byte == b',');
    let mut read = [&b""[..]; FIELDS.len()];
    for (at, field) in read.iter_mut().enumerate() {
        *field = fields.next().ok_or(BadLine::Fields(at))?;
    }
    let [time, kind, order, shares, price, direction] = read;
    let kind = match kind {
        b"1" => Kind::New,
        b"2" => Kind::Cancel,
        b"3" => Kind::Delete,
        b"4" => Kind::Execution,
        b"5" => Kind::Hidden,
        b"6" => Kind::Cross,
        b"7" => Kind::Halt,
        _ => return Err(BadLine::Field(1)),
    };
    let time = nanoseconds(time).ok_or(BadLine::Field(0))?;
    if kind == Kind::Halt {
        // Its price says whether trading ends or begins, and its other fields say nothing.
        return Ok(Line { time, kind, order: 0, shares: 0, price: 0, side: Side::Buy });
    }
    // A cross has no order, and so its number is -1.
    let order = if kind == Kind::Cross { Some(0) } else { number(order) };
    let side = match direction {
        b"1" => Side::Buy,
        b"-1" => Side::Sell,
        _ => return Err(BadLine::Field(5)),
    };
    let small = |bytes, field| {
        number(bytes).and_then(|number| u32::try_from(number).ok()).ok_or(BadLine::Field(field))
    };
    Ok(Line {
        time,
        kind,
        order: order.filter(|order| *order < ORDERS).ok_or(BadLine::Field(2))?,
        shares: small(shares, 3)?,
        price: small(price, 4)?,
        side,
    })
}

/// A whole number of at least one digit.
fn number(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Seconds with up to nine decimals, and more that are dropped, in nanoseconds: as many as ITCH has bytes for.
fn nanoseconds(bytes: &[u8]) -> Option<u64> {
    const DECIMALS: usize = 9;
    let point = bytes.iter().position(|&byte| byte == b'.').unwrap_or(bytes.len());
    let seconds = number(&bytes[..point])?;
    let decimals = bytes.get(point + 1..).unwrap_or_default();
    if !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = decimals.iter().map(|byte| u64::from(byte - b'0')).chain(core::iter::repeat(0));
    let below = digits.take(DECIMALS).fold(0, |below, digit| below * 10 + digit);
    let time = seconds.checked_mul(1_000_000_000)?.checked_add(below)?;
    Some(time).filter(|time| *time < 1 << 48)
}

/// Whether an input begins as a line does: a time and a type.
pub fn is_line(begin: &[u8]) -> bool {
    let mut fields = begin.split(|&byte| byte == b',');
    let time = fields.next().and_then(nanoseconds);
    let kind = fields.next();
    time.is_some() && matches!(kind, Some([b'1'..=b'7'])) && fields.next().is_some()
}

impl Line {
    /// What begins the message of ITCH that says the same.
    pub const fn header(&self, locate: u16) -> Header {
        let kind = match self.kind {
            Kind::New => b'A',
            Kind::Cancel => b'X',
            Kind::Delete => b'D',
            Kind::Execution => b'E',
            Kind::Hidden => b'P',
            Kind::Cross => b'Q',
            Kind::Halt => b'H',
        };
        let [_, _, a, b, c, d, e, f] = self.time.to_be_bytes();
        Header { kind, locate: U16::new(locate), tracking: U16::new(0), time: [a, b, c, d, e, f] }
    }

    /// Does something with that message, in which the order has this number.
    #[inline]
    pub fn with_message<T>(&self, header: Header, order: u64, then: impl FnOnce(&Message<'_>) -> T) -> T {
        const NO_STOCK: [u8; 8] = *b"        ";
        let (order, shares, price) = (U64::new(order), U32::new(self.shares), U32::new(self.price));
        let side = match self.side {
            Side::Buy => b'B',
            Side::Sell => b'S',
        };
        let trade = U64::new(0);
        match self.kind {
            Kind::New => {
                let add = Add { header, order, side, shares, stock: NO_STOCK, price };
                then(&Message::Add(&add, *b"    "))
            }
            Kind::Cancel => then(&Message::Cancel(&Cancel { header, order, shares })),
            Kind::Delete => then(&Message::Delete(&Delete { header, order })),
            Kind::Execution => then(&Message::Executed(&Executed { header, order, shares, trade })),
            Kind::Hidden => {
                let hidden = Trade { header, order, side, shares, stock: NO_STOCK, price, trade };
                then(&Message::Trade(&hidden))
            }
            Kind::Cross => {
                let shares = U64::new(u64::from(self.shares));
                let cross = Cross { header, shares, stock: NO_STOCK, price, trade, cross: b' ' };
                then(&Message::Cross(&cross))
            }
            Kind::Halt => then(&Message::Other),
        }
    }
}

/// A line of an orderbook file: for each level the price and size of the ask, then of the bid, the best first.
#[derive(Clone, Copy)]
pub struct Row<'r>(&'r [u8]);

/// The fields of a level.
const LEVEL: usize = 4;

impl<'r> Row<'r> {
    /// Reads a line.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(bytes: &'r [u8]) -> Result<Self, BadLine> {
        let mut count = 0;
        for field in bytes.split(|&byte| byte == b',') {
            count += 1;
            // Every second is a size.
            let most = if count % 2 == 0 { u64::from(u32::MAX) } else { u64::MAX };
            if number(field.strip_prefix(b"-").unwrap_or(field)).is_none_or(|number| number > most) {
                return Err(BadLine::Row(count));
            }
        }
        if count % LEVEL == 0 { Ok(Self(bytes)) } else { Err(BadLine::Row(count)) }
    }

    /// The price and the shares of each level of a side, the best first.
    pub fn levels(self, side: Side) -> impl Iterator<Item = (u32, u64)> + use<'r> {
        let first = match side {
            Side::Sell => 0,
            Side::Buy => 2,
        };
        let fields = move |at| self.0.split(|&byte| byte == b',').skip(at).step_by(LEVEL);
        let there = |(price, _): &(&[u8], &[u8])| price.strip_prefix(b"-").unwrap_or(price) != NO_PRICE;
        let known =
            |(price, size): (&[u8], &[u8])| Some((u32::try_from(number(price)?).ok()?, number(size)?));
        fields(first).zip(fields(first + 1)).take_while(there).filter_map(known)
    }

    /// Levels that there is a place for on each side.
    pub fn places(self) -> usize {
        self.0.split(|&byte| byte == b',').count() / LEVEL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that LOBSTER's description of its files shows, and those that it describes.
    #[test]
    fn lines_are_what_their_description_says() {
        let line = parse(b"34713.685155243,1,206833312,100,118600,-1").unwrap();
        let time = 34_713_685_155_243;
        let expected =
            Line { time, kind: Kind::New, order: 206_833_312, shares: 100, price: 118_600, side: Side::Sell };
        assert_eq!(line, expected);
        let line = parse(b"34714.133632201,3,206833312,100,118600,-1").unwrap();
        assert_eq!((line.kind, line.order), (Kind::Delete, 206_833_312));
        assert_eq!(line.header(3).nanoseconds(), 34_714_133_632_201);
        for (kind, direction, side) in [(Kind::Cancel, "1", Side::Buy), (Kind::Execution, "-1", Side::Sell)] {
            let number = if kind == Kind::Cancel { 2 } else { 4 };
            let line = parse(format!("1.5,{number},7,8,9,{direction}").as_bytes()).unwrap();
            assert_eq!((line.kind, line.time, line.side), (kind, 1_500_000_000, side));
        }
        assert_eq!(parse(b"1,5,0,100,118600,1").unwrap().kind, Kind::Hidden);
        let cross = parse(b"1,6,-1,5000,118600,-1").unwrap();
        assert_eq!((cross.kind, cross.order, cross.shares), (Kind::Cross, 0, 5_000));
        assert_eq!(parse(b"1.0,7,0,0,-1,-1").unwrap().kind, Kind::Halt);
        assert_eq!(parse(b"1.0,1,1,1,1,1,null").unwrap().time, 1_000_000_000);
        assert_eq!(parse(b"1.1234567899,1,1,1,1,1").unwrap().time, 1_123_456_789);
    }

    #[test]
    fn what_is_no_line_is_named_by_its_field() {
        for (line, why) in [
            ("", BadLine::Fields(1)),
            ("1,1,1,1,1", BadLine::Fields(5)),
            ("x,1,1,1,1,1", BadLine::Field(0)),
            ("1.x,1,1,1,1,1", BadLine::Field(0)),
            ("999999,1,1,1,1,1", BadLine::Field(0)),
            ("1,8,1,1,1,1", BadLine::Field(1)),
            ("1,1,-1,1,1,1", BadLine::Field(2)),
            ("1,1,140737488355328,1,1,1", BadLine::Field(2)),
            ("1,1,1,4294967296,1,1", BadLine::Field(3)),
            ("1,1,1,1,,1", BadLine::Field(4)),
            ("1,1,1,1,1,0", BadLine::Field(5)),
        ] {
            let fault = parse(line.as_bytes()).unwrap_err();
            // An empty line has one field, which is empty.
            assert_eq!(fault, why, "{line}");
            assert!(!fault.to_string().is_empty());
        }
        assert!(is_line(b"34200.017459617,5,0,1,2238200,-1"));
        assert!(!is_line(b"34200.017459617,8,0,1") && !is_line(b"time,1,") && !is_line(b"34200,1"));
    }

    #[test]
    fn rows_have_the_levels_of_both_sides() {
        let row =
            Row::parse(b"1186600,9484,118500,8800,9999999999,0,118400,14930,9999999999,0,-9999999999,0");
        let row = row.unwrap();
        assert_eq!(row.levels(Side::Sell).collect::<Vec<_>>(), [(1_186_600, 9_484)]);
        assert_eq!(row.levels(Side::Buy).collect::<Vec<_>>(), [(118_500, 8_800), (118_400, 14_930)]);
        assert_eq!(row.places(), 3);
        assert_eq!(Row::parse(b"1,2,3").err(), Some(BadLine::Row(3)));
        assert_eq!(Row::parse(b"1,2,x,4").err(), Some(BadLine::Row(3)));
        assert_eq!(Row::parse(b"1,4294967296,3,4").err(), Some(BadLine::Row(2)));
    }
}
