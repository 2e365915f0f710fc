//! The wire format: `<receive ns> <json>`, parsed without allocating.
//!
//! Level entries stream to the caller as they are read, because the fields that
//! say what they mean may come after them: key order does not matter
//! (design/order-book.md `.wire.order`).

use core::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::decimal::Decimal;
use crate::levels::Level;

/// The fewest bytes a level entry takes, its comma included: `["1","0"],`. The
/// last entry of a list has no comma, but brackets around it.
const ENTRY_BYTES: usize = 10;

/// Which side of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Who buys.
    Bid,
    /// Who sells.
    Ask,
}

/// A level on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) side: Side,
    pub(crate) level: Level,
}

/// What a record is, its level entries apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Changes of levels, up to the update number.
    Depth {
        /// The number of the last update in it.
        update: u64,
    },
    /// The best levels, for information.
    BookTicker,
    /// A trade, for information.
    Trade,
    /// All levels.
    Snapshot {
        /// The number of the last update in it.
        update: u64,
    },
}

/// Where and why a line is malformed.
#[derive(Debug)]
pub(crate) struct WireError {
    column: usize,
    cause: String,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed record: {} (column {})", self.cause, self.column)
    }
}

/// The most level entries that a line of `size` bytes can hold.
pub(crate) const fn entries_bound(size: usize) -> usize {
    size / ENTRY_BYTES
}

/// Parses a record, without its line end, and gives each level entry to `sink`,
/// which hands back what it has no room for; see [`entries_bound`].
///
/// # Errors
/// [`WireError`] where the line is no record or `sink` has no room; entries before the error have gone
/// to `sink`.
pub(crate) fn parse(
    line: &[u8],
    mut sink: impl FnMut(Entry) -> Result<(), Entry>,
) -> Result<Message, WireError> {
    let json = skip_receive_time(line)?;
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let message = RecordSeed(&mut sink).deserialize(&mut deserializer);
    message.and_then(|message| deserializer.end().map(|()| message)).map_err(|error| WireError {
        column: line.len() - json.len() + error.column(),
        cause: without_position(&error.to_string()).to_owned(),
    })
}

/// The line after `<receive ns> `.
fn skip_receive_time(line: &[u8]) -> Result<&[u8], WireError> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match line.get(digits) {
        Some(b' ') if digits > 0 => Ok(&line[digits + 1..]),
        _ => Err(WireError {
            column: digits + 1,
            cause: "expected the receive time in nanoseconds and a space".to_owned(),
        }),
    }
}

/// The text of a JSON error without the position, which counts from the wrong place.
fn without_position(text: &str) -> &str {
    text.rfind(" at line ").map_or(text, |end| &text[..end])
}

/// Fills a field that may come only once.
fn set_once<T, E: Error>(field: &mut Option<T>, value: T, key: &'static str) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(key)),
    }
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum RecordKey {
    #[serde(rename = "stream")]
    Stream,
    #[serde(rename = "data")]
    Data,
    #[serde(rename = "lastUpdateId")]
    LastUpdateId,
    #[serde(rename = "bids")]
    Bids,
    #[serde(rename = "asks")]
    Asks,
    #[serde(other)]
    Other,
}

/// A whole record.
struct RecordSeed<'s, S>(&'s mut S);

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> DeserializeSeed<'de> for RecordSeed<'_, S> {
    type Value = Message;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Message, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> Visitor<'de> for RecordSeed<'_, S> {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stream message or a snapshot")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
        let (mut stream, mut data, mut last_update) = (None, None, None);
        let (mut bids, mut asks) = (None, None);
        while let Some(key) = map.next_key()? {
            match key {
                RecordKey::Stream => set_once(&mut stream, map.next_value::<StreamName>()?, "stream")?,
                RecordKey::Data => set_once(&mut data, map.next_value_seed(DataSeed(&mut *self.0))?, "data")?,
                RecordKey::LastUpdateId => set_once(&mut last_update, map.next_value()?, "lastUpdateId")?,
                RecordKey::Bids => {
                    set_once(&mut bids, map.next_value_seed(LevelsSeed(Side::Bid, &mut *self.0))?, "bids")?;
                }
                RecordKey::Asks => {
                    set_once(&mut asks, map.next_value_seed(LevelsSeed(Side::Ask, &mut *self.0))?, "asks")?;
                }
                RecordKey::Other => map.next_value::<Skipped>().map(|_| ())?,
            }
        }
        match (data, last_update, bids, asks) {
            (Some(data), None, None, None) => data.message(stream),
            (None, Some(update), Some(()), Some(())) => Ok(Message::Snapshot { update }),
            (None, Some(_), None, _) => Err(A::Error::missing_field("bids")),
            (None, Some(_), _, None) => Err(A::Error::missing_field("asks")),
            _ => Err(A::Error::custom("the record needs either `data` or `lastUpdateId`, `bids` and `asks`")),
        }
    }
}

/// What the name of a stream says: spot book tickers have no other mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamName {
    BookTicker,
    Other,
}

impl<'de> Deserialize<'de> for StreamName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = StreamName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a stream")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<StreamName, E> {
                Ok(if name.ends_with("@bookTicker") { StreamName::BookTicker } else { StreamName::Other })
            }
        }
        deserializer.deserialize_str(Name)
    }
}

#[derive(Clone, Copy, Deserialize)]
enum EventName {
    #[serde(rename = "depthUpdate")]
    DepthUpdate,
    #[serde(rename = "bookTicker")]
    BookTicker,
    #[serde(rename = "trade")]
    Trade,
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum DataKey {
    #[serde(rename = "e")]
    Event,
    #[serde(rename = "u")]
    Update,
    #[serde(rename = "b")]
    Bid,
    #[serde(rename = "B")]
    BidQuantity,
    #[serde(rename = "a")]
    Ask,
    #[serde(rename = "A")]
    AskQuantity,
    #[serde(rename = "p")]
    Price,
    #[serde(rename = "q")]
    Quantity,
    #[serde(other)]
    Other,
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
struct Data {
    event: Option<EventName>,
    update: Option<u64>,
    bid: Option<SideValue>,
    bid_quantity: Option<Decimal>,
    ask: Option<SideValue>,
    ask_quantity: Option<Decimal>,
    price: Option<Decimal>,
    quantity: Option<Decimal>,
}

impl Data {
    fn message<E: Error>(&self, stream: Option<StreamName>) -> Result<Message, E> {
        let event = match (self.event, stream) {
            (Some(event), Some(_)) => event,
            (None, Some(StreamName::BookTicker)) => EventName::BookTicker,
            (None, Some(StreamName::Other)) => return Err(E::missing_field("e")),
            (_, None) => return Err(E::missing_field("stream")),
        };
        match event {
            EventName::DepthUpdate => self.depth_update(),
            EventName::BookTicker => self.book_ticker(),
            EventName::Trade => self.trade(),
        }
    }

    fn depth_update<E: Error>(&self) -> Result<Message, E> {
        require(self.bid == Some(SideValue::Levels), "a depth update needs levels in `b`")?;
        require(self.ask == Some(SideValue::Levels), "a depth update needs levels in `a`")?;
        Ok(Message::Depth { update: self.update.ok_or_else(|| E::missing_field("u"))? })
    }

    fn book_ticker<E: Error>(&self) -> Result<Message, E> {
        require(self.bid == Some(SideValue::Price), "a book ticker needs a price in `b`")?;
        require(self.ask == Some(SideValue::Price), "a book ticker needs a price in `a`")?;
        require(self.bid_quantity.is_some(), "a book ticker needs a quantity in `B`")?;
        require(self.ask_quantity.is_some(), "a book ticker needs a quantity in `A`")?;
        Ok(Message::BookTicker)
    }

    fn trade<E: Error>(&self) -> Result<Message, E> {
        require(self.price.is_some(), "a trade needs a price in `p`")?;
        require(self.quantity.is_some(), "a trade needs a quantity in `q`")?;
        Ok(Message::Trade)
    }
}

fn require<E: Error>(holds: bool, cause: &'static str) -> Result<(), E> {
    if holds { Ok(()) } else { Err(E::custom(cause)) }
}

/// The value of `data`.
struct DataSeed<'s, S>(&'s mut S);

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> DeserializeSeed<'de> for DataSeed<'_, S> {
    type Value = Data;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> Visitor<'de> for DataSeed<'_, S> {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut data = Data::default();
        while let Some(key) = map.next_key()? {
            match key {
                DataKey::Event => set_once(&mut data.event, map.next_value()?, "e")?,
                DataKey::Update => set_once(&mut data.update, map.next_value()?, "u")?,
                DataKey::Bid => {
                    set_once(&mut data.bid, map.next_value_seed(SideSeed(Side::Bid, &mut *self.0))?, "b")?;
                }
                DataKey::BidQuantity => set_once(&mut data.bid_quantity, map.next_value()?, "B")?,
                DataKey::Ask => {
                    set_once(&mut data.ask, map.next_value_seed(SideSeed(Side::Ask, &mut *self.0))?, "a")?;
                }
                DataKey::AskQuantity => set_once(&mut data.ask_quantity, map.next_value()?, "A")?,
                DataKey::Price => set_once(&mut data.price, map.next_value()?, "p")?,
                DataKey::Quantity => set_once(&mut data.quantity, map.next_value()?, "q")?,
                DataKey::Other => map.next_value::<Skipped>().map(|_| ())?,
            }
        }
        Ok(data)
    }
}

/// The value of `b` or `a`.
struct SideSeed<'s, S>(Side, &'s mut S);

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> DeserializeSeed<'de> for SideSeed<'_, S> {
    type Value = SideValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SideValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> Visitor<'de> for SideSeed<'_, S> {
    type Value = SideValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("levels, a price or an order's number")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<SideValue, A::Error> {
        LevelsSeed(self.0, self.1).visit_seq(seq).map(|()| SideValue::Levels)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SideValue, E> {
        Decimal::parse(text).map(|_| SideValue::Price).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, _order: u64) -> Result<SideValue, E> {
        Ok(SideValue::OrderId)
    }
}

/// A list of levels, given to the sink one by one.
struct LevelsSeed<'s, S>(Side, &'s mut S);

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> DeserializeSeed<'de> for LevelsSeed<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S: FnMut(Entry) -> Result<(), Entry>> Visitor<'de> for LevelsSeed<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of [price, quantity]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self(side, sink) = self;
        while let Some((price, quantity)) = seq.next_element()? {
            sink(Entry { side, level: Level { price, quantity } })
                .map_err(|_refused| A::Error::custom("more levels than there is room for"))?;
        }
        Ok(())
    }
}

/// A value nobody asked for. `serde::de::IgnoredAny` would do, but for nested
/// lists `serde_json` then keeps a stack on the heap (design/order-book.md
/// `.wire.skip`).
struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Skipped {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::allocator_calls::calls_of_this_thread;

    const DEPTH: &str = r#"1723161255030314667 {"stream":"btcusdt@depth@0ms","data":{"e":"depthUpdate","E":1723161256299,"T":1723161256298,"s":"BTCUSDT","U":5123107832006,"u":5123107837557,"pu":5123107831937,"b":[["58710.20","0.014"],["61510.90","0.000"]],"a":[["61800.30","3.330"]]}}"#;
    const SPOT_DEPTH: &str = r#"1 {"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":7,"u":9,"b":[],"a":[["0.00000001","12"]]}}"#;
    const TICKER: &str = r#"1 {"stream":"btcusdt@bookTicker","data":{"e":"bookTicker","u":5,"s":"BTCUSDT","b":"61800.20","B":"2.507","a":"61800.30","A":"2.510","T":1,"E":1}}"#;
    const SPOT_TICKER: &str = r#"1 {"stream":"btcusdt@bookTicker","data":{"u":5,"s":"BTCUSDT","b":"61800.20","B":"2.507","a":"61800.30","A":"2.510"}}"#;
    const TRADE: &str = r#"1 {"stream":"btcusdt@trade","data":{"e":"trade","E":1,"T":1,"s":"BTCUSDT","t":5,"p":"61800.30","q":"0.006","X":"MARKET","m":false}}"#;
    const SPOT_TRADE: &str = r#"1 {"stream":"btcusdt@trade","data":{"e":"trade","E":1,"s":"BTCUSDT","t":5,"p":"1","q":"2","b":88,"a":50,"T":1,"m":true,"M":true}}"#;
    const SNAPSHOT: &str =
        r#"1 {"lastUpdateId":77,"E":1,"T":1,"bids":[["1.5","2"]],"asks":[["2.5","3"],["3.5","0.1"]]}"#;

    fn parsed(line: &str) -> Result<(Message, Vec<Entry>), WireError> {
        let mut entries = Vec::new();
        let message = parse(line.as_bytes(), |entry| {
            entries.push(entry);
            Ok(())
        })?;
        Ok((message, entries))
    }

    fn entry(side: Side, price: &str, quantity: &str) -> Entry {
        let decimal = |text| Decimal::parse(text).unwrap();
        Entry { side, level: Level { price: decimal(price), quantity: decimal(quantity) } }
    }

    #[test]
    fn reads_both_dialects() {
        let (bid, ask) = (Side::Bid, Side::Ask);
        assert_eq!(
            parsed(DEPTH).unwrap(),
            (
                Message::Depth { update: 5_123_107_837_557 },
                vec![
                    entry(bid, "58710.2", "0.014"),
                    entry(bid, "61510.9", "0"),
                    entry(ask, "61800.3", "3.33")
                ]
            )
        );
        let spot = vec![entry(ask, "0.00000001", "12")];
        assert_eq!(parsed(SPOT_DEPTH).unwrap(), (Message::Depth { update: 9 }, spot));
        assert_eq!(parsed(TICKER).unwrap(), (Message::BookTicker, vec![]));
        assert_eq!(parsed(SPOT_TICKER).unwrap(), (Message::BookTicker, vec![]));
        assert_eq!(parsed(TRADE).unwrap(), (Message::Trade, vec![]));
        assert_eq!(parsed(SPOT_TRADE).unwrap(), (Message::Trade, vec![]));
        let levels = vec![entry(bid, "1.5", "2"), entry(ask, "2.5", "3"), entry(ask, "3.5", "0.1")];
        assert_eq!(parsed(SNAPSHOT).unwrap(), (Message::Snapshot { update: 77 }, levels));
    }

    #[test]
    fn key_order_and_unknown_fields_do_not_matter() {
        let reordered = r#"1 {"x":[[1],{"y":[null,-1,1.5,"z",true]}],"data":{"a":[["2","1"]],"new":{"b":[[[]]]},"b":[],"u":3,"e":"depthUpdate"},"stream":"s"}"#;
        assert_eq!(
            parsed(reordered).unwrap(),
            (Message::Depth { update: 3 }, vec![entry(Side::Ask, "2", "1")])
        );
        let ticker = r#"1 {"data":{"A":"1","a":"1","B":"1","b":"1"},"stream":"btcusdt@bookTicker"}"#;
        assert_eq!(parsed(ticker).unwrap().0, Message::BookTicker);
        let snapshot = r#"1 {"asks":[["1","1"]],"bids":[],"lastUpdateId":1}"#;
        assert_eq!(parsed(snapshot).unwrap().1, vec![entry(Side::Ask, "1", "1")]);
        let escaped =
            r#"1 {"stream":"btcusdt\u0040bookTicker","data":{"b":"\u0031","B":"1","a":"1","A":"1"}}"#;
        assert_eq!(parsed(escaped).unwrap().0, Message::BookTicker);
    }

    #[test]
    fn malformed_lines_say_where_and_why() {
        for (line, column, cause) in [
            ("", 1, "expected the receive time"),
            ("{}", 1, "expected the receive time"),
            ("-1 {}", 1, "expected the receive time"),
            ("12", 3, "expected the receive time"),
            ("1 ", 2, "EOF while parsing"),
            ("1 []", 2, "expected a stream message or a snapshot"),
            ("1 {}", 4, "needs either `data` or `lastUpdateId`"),
            (r#"1 {"data":{"e":"trade","p":"1","q":"1"}}"#, 40, "missing field `stream`"),
            (r#"1 {"stream":"s","data":{}}"#, 26, "missing field `e`"),
            (r#"1 {"stream":"s","data":{"e":"fill"}}"#, 34, "unknown variant `fill`"),
            (r#"1 {"stream":"s","data":{"e":"trade","p":"1"}}"#, 45, "a trade needs a quantity"),
            (r#"1 {"stream":"s","data":{"e":"trade","p":"1","p":"1"}}"#, 52, "duplicate field `p`"),
            (r#"1 {"stream":"s","data":{"e":"trade","p":"1x","q":"1"}}"#, 44, "not a decimal number"),
            (r#"1 {"stream":"s","data":{"e":"depthUpdate","u":1,"b":[]}}"#, 56, "needs levels in `a`"),
            (r#"1 {"stream":"s","data":{"e":"depthUpdate","b":[],"a":[]}}"#, 57, "missing field `u`"),
            (r#"1 {"stream":"s","data":{"b":[["1"]]}}"#, 34, "invalid length 1"),
            (r#"1 {"stream":"s","data":{"b":[["1","2","3"]]}}"#, 39, "trailing characters"),
            (r#"1 {"lastUpdateId":1,"bids":[]}"#, 30, "missing field `asks`"),
            (r#"1 {"lastUpdateId":1,"bids":[],"asks":[]} x"#, 42, "trailing characters"),
            (r#"1 {"lastUpdateId":-1,"bids":[],"asks":[]}"#, 20, "invalid value"),
        ] {
            let error = parsed(line).expect_err(line);
            assert!(error.cause.contains(cause), "{line}: {error}");
            assert_eq!(error.column, column, "{line}: {error}");
        }
    }

    #[test]
    fn a_truncated_line_is_malformed_wherever_it_ends() {
        for line in [DEPTH, TICKER, SPOT_TICKER, TRADE, SPOT_TRADE, SNAPSHOT] {
            for end in 0..line.len() {
                assert!(parsed(&line[..end]).is_err(), "{}", &line[..end]);
            }
        }
    }

    #[test]
    fn parsing_allocates_nothing() {
        let nested = r#"1 {"x":[[[[1]]]],"lastUpdateId":1,"bids":[["1","1"]],"asks":[]}"#;
        for line in [DEPTH, SPOT_DEPTH, TICKER, SPOT_TICKER, TRADE, SPOT_TRADE, SNAPSHOT, nested] {
            let before = calls_of_this_thread();
            let message = parse(line.as_bytes(), |_| Ok(()));
            assert_eq!(calls_of_this_thread() - before, 0, "{line}");
            message.unwrap();
        }
    }

    #[test]
    fn a_sink_without_room_ends_the_parse() {
        let error = parse(DEPTH.as_bytes(), Err).unwrap_err();
        assert!(error.cause.contains("more levels than there is room for"), "{error}");
    }

    proptest! {
        #[test]
        fn a_line_has_no_more_entries_than_its_bound(bids in 0..40_usize, asks in 0..40_usize) {
            // The shortest record that there is with so many entries.
            let list = |count| vec![r#"["1","0"]"#; count].join(",");
            let line = format!(r#"1 {{"lastUpdateId":1,"bids":[{}],"asks":[{}]}}"#, list(bids), list(asks));
            let (_, entries) = parsed(&line).unwrap();
            prop_assert_eq!(entries.len(), bids + asks);
            prop_assert!(entries.len() <= entries_bound(line.len()));
        }
    }
}
