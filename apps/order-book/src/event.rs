//! What `data` of a stream message holds: an event, whose form depends on the stream.

use crate::decimal::Decimal;
use crate::json::{Result, Scanner, Text};
use crate::malformed::Cause;
use crate::record::{Message, Side, Sink, Span, Ticker, read_levels, set_once};
use crate::symbol::Symbol;

/// A field whose form matters to some records only; others skip it.
type Lenient<T> = Option<Result<T>>;

/// What the name of a stream says of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Depth,
    BookTicker,
    Trade,
    /// Nothing of the book, or no changes of it: lists of the best levels (`@depth5`) are no changes, and
    /// other books (`@rpiDepth`) are not this one. Their events may have the name of a depth update.
    Other,
    /// No name of a stream: the event has to say what it is.
    Unnamed,
}

/// The name of a stream: `btcusdt@depth@100ms`.
#[derive(Clone, Copy, Debug)]
pub struct StreamName {
    kind: Kind,
    symbol: Option<Symbol>,
}

impl StreamName {
    /// Of a record that is sent without the name of its stream.
    pub const NONE: Self = Self { kind: Kind::Unnamed, symbol: None };

    pub fn of(name: &str) -> Self {
        let Some((symbol, what)) = name.split_once('@') else {
            let kind = match name {
                "!bookTicker" => Kind::BookTicker,
                _ if name.starts_with('!') => Kind::Other,
                _ => Kind::Unnamed,
            };
            return Self { kind, symbol: None };
        };
        let kind = match what.split('@').next() {
            Some("depth") => Kind::Depth,
            Some("bookTicker") => Kind::BookTicker,
            Some("trade") => Kind::Trade,
            _ => Kind::Other,
        };
        Self { kind, symbol: Symbol::new(symbol) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
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
    Symbol,
    First,
    Update,
    Previous,
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
            "s" => Self::Symbol,
            "U" => Self::First,
            "u" => Self::Update,
            "pu" => Self::Previous,
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
    Price(Decimal),
    /// Of a spot trade.
    OrderId,
}

/// The fields of `data`, in the order they may come: any.
#[derive(Default)]
pub struct Data {
    event: Lenient<EventName>,
    symbol: Lenient<Symbol>,
    first: Lenient<u64>,
    update: Lenient<u64>,
    previous: Lenient<u64>,
    bid: Lenient<SideValue>,
    bid_quantity: Lenient<Decimal>,
    ask: Lenient<SideValue>,
    ask_quantity: Lenient<Decimal>,
    price: Lenient<Decimal>,
    quantity: Lenient<Decimal>,
}

impl Data {
    /// Reads an object; any other value has no fields.
    pub fn read<S: Sink>(&mut self, scanner: &mut Scanner<'_>, sink: &mut S) -> Result<()> {
        if scanner.peek() == Some(b'{') {
            scanner.object("an event", |scanner, key| self.member(scanner, key, sink))
        } else {
            scanner.skip()
        }
    }

    /// Reads the value of a key.
    pub fn member<S: Sink>(&mut self, scanner: &mut Scanner<'_>, key: Text<'_>, sink: &mut S) -> Result<()> {
        match key.read(DataKey::of)? {
            DataKey::Event => set_leniently(&mut self.event, scanner, "e", |scanner| {
                scanner.string("the name of an event")?.read(EventName::of)
            }),
            DataKey::Symbol => set_leniently(&mut self.symbol, scanner, "s", read_symbol),
            DataKey::First => set_leniently(&mut self.first, scanner, "U", Scanner::whole_number),
            DataKey::Previous => set_leniently(&mut self.previous, scanner, "pu", Scanner::whole_number),
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
        use EventName as Event;
        match (stream.kind, self.event) {
            (Kind::Other, _) => Ok(Message::Other),
            (Kind::Depth | Kind::Unnamed, Some(Ok(Event::DepthUpdate))) => self.depth_update(stream, end),
            (Kind::Trade | Kind::Unnamed, Some(Ok(Event::Trade))) => self.trade(end),
            (Kind::BookTicker, None) | (Kind::BookTicker | Kind::Unnamed, Some(Ok(Event::BookTicker))) => {
                self.book_ticker(stream, end)
            }
            // The spot market's, which is known by the name of its stream only.
            (Kind::Unnamed, None) if self.has_prices() => self.book_ticker(stream, end),
            (Kind::Unnamed, _) => Ok(Message::Other),
            (_, Some(Ok(_))) => end.malformed(Cause::Wrong("an event of another stream")),
            (_, event) => need(event, end, "field `e`").map(|_| Message::Other),
        }
    }

    /// Whether there are lists of levels.
    pub const fn has_levels(&self) -> bool {
        matches!(self.bid, Some(Ok(SideValue::Levels))) || matches!(self.ask, Some(Ok(SideValue::Levels)))
    }

    const fn has_prices(&self) -> bool {
        matches!((self.bid, self.ask), (Some(Ok(SideValue::Price(_))), Some(Ok(SideValue::Price(_)))))
    }

    /// The symbol that it names.
    pub fn symbol(&self) -> Option<Symbol> {
        self.symbol.and_then(Result::ok)
    }

    fn depth_update(&self, stream: StreamName, end: &Scanner<'_>) -> Result<Message> {
        for (side, what) in
            [(self.bid, "levels in `b` of a depth update"), (self.ask, "levels in `a` of a depth update")]
        {
            if need(side, end, what)? != SideValue::Levels {
                return end.malformed(Cause::Missing(what));
            }
        }
        let symbol = self.symbol().or(stream.symbol);
        let symbol = symbol.map_or_else(|| end.malformed(Cause::Missing("a symbol in `s`")), Ok)?;
        let (first, last) = (need(self.first, end, "field `U`")?, need(self.update, end, "field `u`")?);
        let before = match self.previous {
            Some(previous) => previous?,
            None => first.saturating_sub(1),
        };
        if first > last || before > last {
            return end.malformed(Cause::Wrong("numbers of updates that go backwards"));
        }
        Ok(Message::Depth { symbol, span: Span { before, last } })
    }

    fn book_ticker(&self, stream: StreamName, end: &Scanner<'_>) -> Result<Message> {
        let bid = need_price(self.bid, end, "a price in `b` of a book ticker")?;
        let ask = need_price(self.ask, end, "a price in `a` of a book ticker")?;
        need(self.bid_quantity, end, "a quantity in `B` of a book ticker")?;
        need(self.ask_quantity, end, "a quantity in `A` of a book ticker")?;
        let ticker = self.update.transpose()?.map(|update| Ticker { update, bid, ask });
        Ok(Message::BookTicker { symbol: self.symbol().or(stream.symbol), ticker })
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

fn need_price(field: Lenient<SideValue>, end: &Scanner<'_>, what: &'static str) -> Result<Decimal> {
    match need(field, end, what)? {
        SideValue::Price(price) => Ok(price),
        SideValue::Levels | SideValue::OrderId => end.malformed(Cause::Missing(what)),
    }
}

/// Reads the name of what is traded.
pub fn read_symbol(scanner: &mut Scanner<'_>) -> Result<Symbol> {
    let symbol = scanner.string("a symbol")?.read(Symbol::new)?;
    symbol
        .map_or_else(|| scanner.malformed(Cause::Wrong("a symbol that is empty or longer than 31 bytes")), Ok)
}

/// The value of `b` or `a`.
fn read_side<S: Sink>(scanner: &mut Scanner<'_>, side: Side, sink: &mut S) -> Result<SideValue> {
    match scanner.peek() {
        Some(b'[') => read_levels(scanner, side, sink).map(|()| SideValue::Levels),
        Some(b'"') => scanner.decimal().map(SideValue::Price),
        _ => scanner.whole_number().map(|_| SideValue::OrderId),
    }
}
