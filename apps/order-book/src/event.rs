//! What `data` of a stream message holds: an event, whose form depends on the stream.

use crate::decimal::Decimal;
use crate::json::{Result, Scanner, Text};
use crate::malformed::Cause;
use crate::record::{Message, Side, Sink, read_levels, set_once};

/// A field whose form matters to some records only; others skip it.
type Lenient<T> = Option<Result<T>>;

/// What the name of a stream says: spot book tickers have no other mark.
#[derive(Clone, Copy)]
pub enum StreamName {
    BookTicker,
    /// A stream whose records must name their event.
    Known,
    /// A stream that says nothing of the book.
    Other,
}

impl StreamName {
    pub fn of(name: &str) -> Self {
        match name.split('@').nth(1) {
            _ if name.ends_with("@bookTicker") => Self::BookTicker,
            Some("depth" | "trade") => Self::Known,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Copy)]
enum EventName {
    DepthUpdate,
    BookTicker,
    Trade,
    Other,
}

impl EventName {
    fn of(name: &str) -> Self {
        match name {
            "depthUpdate" => Self::DepthUpdate,
            "bookTicker" => Self::BookTicker,
            "trade" => Self::Trade,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Copy)]
enum DataKey {
    Event,
    Update,
    Bid,
    BidQuantity,
    Ask,
    AskQuantity,
    Price,
    Quantity,
    Other,
}

impl DataKey {
    fn of(key: &str) -> Self {
        match key {
            "e" => Self::Event,
            "u" => Self::Update,
            "b" => Self::Bid,
            "B" => Self::BidQuantity,
            "a" => Self::Ask,
            "A" => Self::AskQuantity,
            "p" => Self::Price,
            "q" => Self::Quantity,
            _ => Self::Other,
        }
    }
}

/// What `b` or `a` holds: that depends on the event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SideValue {
    /// Of a depth update.
    Levels,
    /// Of a book ticker.
    Price,
    /// Of a spot trade.
    OrderId,
}

/// The fields of `data`, in the order they may come: any.
#[derive(Default)]
pub struct Data {
    event: Lenient<EventName>,
    update: Lenient<u64>,
    bid: Lenient<SideValue>,
    bid_quantity: Lenient<Decimal>,
    ask: Lenient<SideValue>,
    ask_quantity: Lenient<Decimal>,
    price: Lenient<Decimal>,
    quantity: Lenient<Decimal>,
}

impl Data {
    /// Reads an object; any other value has no fields.
    pub fn read<S: Sink>(scanner: &mut Scanner<'_>, sink: &mut S) -> Result<Self> {
        let mut data = Self::default();
        if scanner.peek() == Some(b'{') {
            scanner.object("an event", |scanner, key| data.member(scanner, key, sink))?;
        } else {
            scanner.skip()?;
        }
        Ok(data)
    }

    fn member<S: Sink>(&mut self, scanner: &mut Scanner<'_>, key: Text<'_>, sink: &mut S) -> Result<()> {
        match key.read(DataKey::of)? {
            DataKey::Event => set_leniently(&mut self.event, scanner, "e", |scanner| {
                scanner.string("the name of an event")?.read(EventName::of)
            }),
            DataKey::Update => set_leniently(&mut self.update, scanner, "u", Scanner::whole_number),
            DataKey::Bid => {
                set_leniently(&mut self.bid, scanner, "b", |scanner| read_side(scanner, Side::Bid, sink))
            }
            DataKey::BidQuantity => set_leniently(&mut self.bid_quantity, scanner, "B", Scanner::decimal),
            DataKey::Ask => {
                set_leniently(&mut self.ask, scanner, "a", |scanner| read_side(scanner, Side::Ask, sink))
            }
            DataKey::AskQuantity => set_leniently(&mut self.ask_quantity, scanner, "A", Scanner::decimal),
            DataKey::Price => set_leniently(&mut self.price, scanner, "p", Scanner::decimal),
            DataKey::Quantity => set_leniently(&mut self.quantity, scanner, "q", Scanner::decimal),
            DataKey::Other => scanner.skip(),
        }
    }

    pub fn message(&self, stream: StreamName, end: &Scanner<'_>) -> Result<Message> {
        match (self.event, stream) {
            (Some(Ok(EventName::DepthUpdate)), _) => self.depth_update(end),
            (Some(Ok(EventName::Trade)), _) => self.trade(end),
            (Some(Ok(EventName::BookTicker)), _) | (None, StreamName::BookTicker) => self.book_ticker(end),
            (_, StreamName::Other) => Ok(Message::Other),
            (Some(Ok(EventName::Other)), _) => end.malformed(Cause::Wrong("an event of another stream")),
            (event, _) => need(event, end, "field `e`").map(|_| Message::Other),
        }
    }

    fn depth_update(&self, end: &Scanner<'_>) -> Result<Message> {
        need_value(self.bid, SideValue::Levels, end, "levels in `b` of a depth update")?;
        need_value(self.ask, SideValue::Levels, end, "levels in `a` of a depth update")?;
        Ok(Message::Depth { update: need(self.update, end, "field `u`")? })
    }

    fn book_ticker(&self, end: &Scanner<'_>) -> Result<Message> {
        need_value(self.bid, SideValue::Price, end, "a price in `b` of a book ticker")?;
        need_value(self.ask, SideValue::Price, end, "a price in `a` of a book ticker")?;
        need(self.bid_quantity, end, "a quantity in `B` of a book ticker")?;
        need(self.ask_quantity, end, "a quantity in `A` of a book ticker")?;
        Ok(Message::BookTicker)
    }

    fn trade(&self, end: &Scanner<'_>) -> Result<Message> {
        let price = need(self.price, end, "a price in `p` of a trade")?;
        let quantity = need(self.quantity, end, "a quantity in `q` of a trade")?;
        Ok(Message::Trade { price, quantity })
    }
}

/// Fills a field that may come only once with what `read` reads, or with its error.
fn set_leniently<'a, T>(
    field: &mut Lenient<T>,
    scanner: &mut Scanner<'a>,
    key: &'static str,
    read: impl FnOnce(&mut Scanner<'a>) -> Result<T>,
) -> Result<()> {
    match scanner.try_read(read)? {
        // The form is not what is wrong.
        Err(malformed) if malformed.cause == Cause::NoRoom => Err(malformed),
        value => set_once(field, value, scanner, key),
    }
}

fn need<T>(field: Lenient<T>, end: &Scanner<'_>, what: &'static str) -> Result<T> {
    field.unwrap_or_else(|| end.malformed(Cause::Missing(what)))
}

fn need_value(
    field: Lenient<SideValue>,
    value: SideValue,
    end: &Scanner<'_>,
    what: &'static str,
) -> Result<()> {
    if need(field, end, what)? == value { Ok(()) } else { end.malformed(Cause::Missing(what)) }
}

/// The value of `b` or `a`.
fn read_side<S: Sink>(scanner: &mut Scanner<'_>, side: Side, sink: &mut S) -> Result<SideValue> {
    match scanner.peek() {
        Some(b'[') => read_levels(scanner, side, sink).map(|()| SideValue::Levels),
        Some(b'"') => scanner.decimal().map(|_| SideValue::Price),
        _ => scanner.whole_number().map(|_| SideValue::OrderId),
    }
}
