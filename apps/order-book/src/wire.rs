//! The wire format: `<receive ns> <json>`, parsed without allocating.

use crate::event::{Data, StreamName, read_symbol};
use crate::json::{Result, Scanner, Text};
use crate::malformed::{Cause, Malformed};
use crate::record::{Message, Side, Sink, read_levels, set_once};
use crate::symbol::Symbol;

/// Parses a record, without its line end, and passes each level entry to `sink`; see
/// [`entries_bound`](crate::record::entries_bound).
///
/// # Errors
/// [`Malformed`] if the line is no record or `sink` has no room. The entries in front of
/// the error were passed to `sink`.
pub fn parse(line: &[u8], mut sink: impl Sink) -> Result<Message> {
    let text = core::str::from_utf8(line)
        .map_err(|error| Malformed { at: error.valid_up_to(), cause: Cause::Wrong("not UTF-8") })?;
    let mut scanner = Scanner::new(text);
    skip_receive_time(&mut scanner)?;
    let mut record = Record::default();
    scanner
        .object("a stream message or a snapshot", |scanner, key| record.member(scanner, key, &mut sink))?;
    scanner.end()?;
    record.message(&scanner)
}

fn skip_receive_time(scanner: &mut Scanner<'_>) -> Result<()> {
    if scanner.digits() == 0 || scanner.byte() != Some(b' ') {
        return scanner.malformed(Cause::Expected("the receive time in nanoseconds and a space"));
    }
    Ok(())
}

/// The fields of a record, which may come in any order.
#[derive(Default)]
struct Record {
    stream: Option<StreamName>,
    data: Option<()>,
    /// The fields in `data`.
    wrapped: Data,
    /// The fields of an event that is sent as it is (`/ws/<stream>`), without `stream` and `data` around it.
    bare: Data,
    symbol: Option<Symbol>,
    last_update: Option<u64>,
    bids: Option<()>,
    asks: Option<()>,
}

#[derive(Clone, Copy)]
enum RecordKey {
    Stream,
    Data,
    LastUpdateId,
    Bids,
    Asks,
    Symbol,
    Other,
}

impl RecordKey {
    fn of(key: &str) -> Self {
        match key {
            "stream" => Self::Stream,
            "data" => Self::Data,
            "lastUpdateId" => Self::LastUpdateId,
            "bids" => Self::Bids,
            "asks" => Self::Asks,
            "symbol" => Self::Symbol,
            _ => Self::Other,
        }
    }
}

impl Record {
    fn member<S: Sink>(&mut self, scanner: &mut Scanner<'_>, key: Text<'_>, sink: &mut S) -> Result<()> {
        match key.read(RecordKey::of)? {
            RecordKey::Stream => {
                let name = scanner.string("the name of a stream")?.read(StreamName::of)?;
                set_once(&mut self.stream, name, scanner, "stream")
            }
            RecordKey::Data => {
                set_once(&mut self.data, (), scanner, "data")?;
                self.wrapped.read(scanner, sink)
            }
            RecordKey::LastUpdateId => {
                let update = scanner.whole_number()?;
                set_once(&mut self.last_update, update, scanner, "lastUpdateId")
            }
            RecordKey::Bids => {
                read_levels(scanner, Side::Bid, sink)?;
                set_once(&mut self.bids, (), scanner, "bids")
            }
            RecordKey::Asks => {
                read_levels(scanner, Side::Ask, sink)?;
                set_once(&mut self.asks, (), scanner, "asks")
            }
            RecordKey::Symbol => {
                // Other records may have something else there.
                self.symbol = scanner.try_read(read_symbol)?.ok();
                Ok(())
            }
            RecordKey::Other => self.bare.member(scanner, key, sink),
        }
    }

    /// What the record is, once all of it was read.
    fn message(&self, end: &Scanner<'_>) -> Result<Message> {
        let snapshot = (self.last_update, self.bids, self.asks);
        if self.bare.has_levels() && (self.stream.is_some() || snapshot != (None, None, None)) {
            return end.malformed(Cause::Wrong("levels beside those of the record"));
        }
        match (self.stream, self.data, snapshot) {
            (Some(stream), Some(()), (None, None, None)) => self.wrapped.message(stream, end),
            (None, Some(()), (None, None, None)) => end.malformed(Cause::Missing("field `stream`")),
            (Some(_), None, (None, None, None)) => end.malformed(Cause::Missing("field `data`")),
            (None, None, (None, None, None)) => match self.bare.message(StreamName::NONE, end)? {
                Message::Trade { .. } if self.bare.symbol().is_none() => {
                    end.malformed(Cause::Missing("a symbol in `s`"))
                }
                message => Ok(message),
            },
            (_, None, (Some(update), Some(()), Some(()))) => {
                Ok(Message::Snapshot { symbol: self.symbol.or_else(|| self.bare.symbol()), update })
            }
            (_, None, (None, ..)) => end.malformed(Cause::Missing("field `lastUpdateId`")),
            (_, None, (_, None, _)) => end.malformed(Cause::Missing("field `bids`")),
            (_, None, _) => end.malformed(Cause::Missing("field `asks`")),
            _ => end.malformed(Cause::Wrong("a record with `data` and the fields of a snapshot")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::allocator_calls::calls_of_this_thread;
    use crate::decimal::Decimal;
    use crate::levels::Level;
    use crate::record::{Entry, Span, Ticker, entries_bound, trades_bound};

    const DEPTH: &str = r#"1723161255030314667 {"stream":"btcusdt@depth@0ms","data":{"e":"depthUpdate","E":1723161256299,"T":1723161256298,"s":"BTCUSDT","U":5123107832006,"u":5123107837557,"pu":5123107831937,"b":[["58710.20","0.014"],["61510.90","0.000"]],"a":[["61800.30","3.330"]]}}"#;
    const SPOT_DEPTH: &str = r#"1 {"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1,"s":"BTCUSDT","U":7,"u":9,"b":[],"a":[["0.00000001","12"]]}}"#;
    const TICKER: &str = r#"1 {"stream":"btcusdt@bookTicker","data":{"e":"bookTicker","u":5,"s":"BTCUSDT","b":"61800.20","B":"2.507","a":"61800.30","A":"2.510","T":1,"E":1}}"#;
    const SPOT_TICKER: &str = r#"1 {"stream":"btcusdt@bookTicker","data":{"u":5,"s":"BTCUSDT","b":"61800.20","B":"2.507","a":"61800.30","A":"2.510"}}"#;
    const TRADE: &str = r#"1 {"stream":"btcusdt@trade","data":{"e":"trade","E":1,"T":1,"s":"BTCUSDT","t":5,"p":"61800.30","q":"0.006","X":"MARKET","m":false}}"#;
    const SPOT_TRADE: &str = r#"1 {"stream":"btcusdt@trade","data":{"e":"trade","E":1,"s":"BTCUSDT","t":5,"p":"1","q":"2","b":88,"a":50,"T":1,"m":true,"M":true}}"#;
    const SNAPSHOT: &str =
        r#"1 {"lastUpdateId":77,"E":1,"T":1,"bids":[["1.5","2"]],"asks":[["2.5","3"],["3.5","0.1"]]}"#;

    fn parsed(line: &str) -> Result<(Message, Vec<Entry>)> {
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

    fn depth(symbol: &str, before: u64, last: u64) -> Message {
        Message::Depth { symbol: Symbol::new(symbol).unwrap(), span: Span { before, last } }
    }

    #[test]
    fn reads_both_dialects() {
        let (bid, ask) = (Side::Bid, Side::Ask);
        assert_eq!(
            parsed(DEPTH).unwrap(),
            (
                depth("BTCUSDT", 5_123_107_831_937, 5_123_107_837_557),
                vec![
                    entry(bid, "58710.2", "0.014"),
                    entry(bid, "61510.9", "0"),
                    entry(ask, "61800.3", "3.33")
                ]
            )
        );
        let spot = vec![entry(ask, "0.00000001", "12")];
        assert_eq!(parsed(SPOT_DEPTH).unwrap(), (depth("BTCUSDT", 6, 9), spot));
        let [bid, ask] = ["61800.20", "61800.30"].map(|text| Decimal::parse(text).unwrap());
        let ticker = Some(Ticker { update: 5, bid, ask });
        for line in [TICKER, SPOT_TICKER] {
            let symbol = Symbol::new("BTCUSDT");
            assert_eq!(parsed(line).unwrap(), (Message::BookTicker { symbol, ticker }, vec![]));
        }
        let trade = |price, quantity| {
            let [price, quantity] = [price, quantity].map(|text| Decimal::parse(text).unwrap());
            (Message::Trade { price, quantity }, vec![])
        };
        assert_eq!(parsed(TRADE).unwrap(), trade("61800.3", "0.006"));
        assert_eq!(parsed(SPOT_TRADE).unwrap(), trade("1", "2"));
        // No shorter one is a trade.
        let shortest = r#"1 {"e":"trade","s":"X","p":"1","q":"1"}"#;
        assert_eq!(parsed(shortest).unwrap(), trade("1", "1"));
        assert_eq!((trades_bound(shortest.len()), trades_bound(2 * shortest.len() + 1)), (1, 2));
        let (bid, ask) = (Side::Bid, Side::Ask);
        let levels = vec![entry(bid, "1.5", "2"), entry(ask, "2.5", "3"), entry(ask, "3.5", "0.1")];
        assert_eq!(parsed(SNAPSHOT).unwrap(), (Message::Snapshot { symbol: None, update: 77 }, levels));
        let named = SNAPSHOT.replace(r#""E":1"#, r#""symbol":"BTCUSD_PERP","pair":"BTCUSD""#);
        let symbol = Symbol::new("BTCUSD_PERP");
        assert_eq!(parsed(&named).unwrap().0, Message::Snapshot { symbol, update: 77 });
    }

    /// A message without `stream` and `data` around it.
    #[test]
    fn messages_may_stand_alone() {
        for line in [DEPTH, SPOT_DEPTH, TICKER, SPOT_TICKER, TRADE, SPOT_TRADE] {
            let (_, data) = line.split_once(r#""data":"#).unwrap();
            let alone = format!("1 {}", data.strip_suffix('}').unwrap());
            assert_eq!(parsed(&alone), parsed(line), "{alone}");
        }
        let all = TICKER.replace("btcusdt@bookTicker", "!bookTicker");
        assert_eq!(parsed(&all), parsed(TICKER));
    }

    #[test]
    fn key_order_and_unknown_fields_do_not_matter() {
        let reordered = r#"1 {"x":[[1],{"y":[null,-1,1.5,"z",true]}],"data":{"a":[["2","1"]],"new":{"b":[[[]]]},"b":[],"u":3,"e":"depthUpdate","U":2},"stream":"x@depth"}"#;
        assert_eq!(parsed(reordered).unwrap(), (depth("X", 1, 3), vec![entry(Side::Ask, "2", "1")]));
        let ticker = r#"1 {"data":{"A":"1","a":"1","B":"1","b":"1"},"stream":"btcusdt@bookTicker"}"#;
        let nothing_but_prices = Message::BookTicker { symbol: Symbol::new("btcusdt"), ticker: None };
        assert_eq!(parsed(ticker).unwrap().0, nothing_but_prices);
        let snapshot = r#"1 {"asks":[["1","1"]],"bids":[],"lastUpdateId":1}"#;
        assert_eq!(parsed(snapshot).unwrap().1, vec![entry(Side::Ask, "1", "1")]);
        let escaped =
            r#"1 {"stream":"btcusdt\u0040bookTicker","data":{"b":"\u0031","B":"1","a":"1","A":"1"}}"#;
        assert_eq!(parsed(escaped).unwrap().0, nothing_but_prices);
    }

    #[test]
    fn malformed_lines_say_where_and_why() {
        for (line, column, cause) in [
            ("", 1, "expected the receive time"),
            ("{}", 1, "expected the receive time"),
            ("-1 {}", 1, "expected the receive time"),
            ("12", 3, "expected the receive time"),
            ("1 ", 3, "ends too early"),
            ("1 []", 3, "expected a stream message or a snapshot"),
            (r#"1 {"data":{"e":"trade","p":"1","q":"1"}}"#, 41, "missing field `stream`"),
            (r#"1 {"stream":"s"}"#, 17, "missing field `data`"),
            (r#"1 {"stream":"x@trade","data":{}}"#, 33, "missing field `e`"),
            (r#"1 {"stream":"x@trade","data":{"e":7}}"#, 35, "expected the name of an event"),
            (r#"1 {"stream":"x@depth@100ms","data":{"e":"fill"}}"#, 49, "an event of another stream"),
            (r#"1 {"stream":"x@bookTicker","data":[]}"#, 38, "missing a price in `b`"),
            (r#"1 {"stream":"s","data":{"e":"trade","p":"1"}}"#, 46, "missing a quantity in `q`"),
            (r#"1 {"stream":"s","data":{"e":"trade","p":"1","p":"1"}}"#, 52, "repeated field `p`"),
            (r#"1 {"stream":"s","data":{"e":"trade","p":"1x","q":"1"}}"#, 41, "not a decimal number"),
            (r#"1 {"stream":"s","data":{"e":"trade","p":1,"q":"1"}}"#, 41, "expected a decimal number in"),
            (r#"1 {"stream":"s","data":{"e":"depthUpdate","u":1,"b":[]}}"#, 57, "missing levels in `a`"),
            (
                r#"1 {"stream":"s","data":{"e":"depthUpdate","u":1,"b":[],"a":"1"}}"#,
                65,
                "missing levels in `a`",
            ),
            (
                r#"1 {"stream":"s@depth","data":{"e":"depthUpdate","U":1,"b":[],"a":[]}}"#,
                70,
                "missing field `u`",
            ),
            (
                r#"1 {"stream":"s@depth","data":{"e":"depthUpdate","u":1,"b":[],"a":[]}}"#,
                70,
                "missing field `U`",
            ),
            (r#"1 {"e":"depthUpdate","U":1,"u":1,"b":[],"a":[]}"#, 48, "missing a symbol in `s`"),
            (r#"1 {"e":"depthUpdate","s":"X","U":2,"u":1,"b":[],"a":[]}"#, 56, "go backwards"),
            (r#"1 {"e":"depthUpdate","s":"X","U":1,"u":1,"pu":2,"b":[],"a":[]}"#, 63, "go backwards"),
            (r#"1 {"e":"trade","p":"1","q":"1"}"#, 32, "missing a symbol in `s`"),
            (r#"1 {"stream":"x@trade","data":{"e":"depthUpdate"}}"#, 50, "an event of another stream"),
            (r#"1 {"stream":"x@depth","data":{},"b":[["1","1"]]}"#, 49, "levels beside"),
            (r#"1 {"lastUpdateId":1,"bids":[],"asks":[],"a":[["1","1"]]}"#, 57, "levels beside"),
            (
                r#"1 {"stream":"s","data":{"e":"depthUpdate","u":1,"a":[],"b":[["1"]]}}"#,
                65,
                "[price, quantity]",
            ),
            (
                r#"1 {"stream":"s","data":{"e":"depthUpdate","u":1,"a":[],"b":[["1","2","3"]]}}"#,
                69,
                "[price, quantity]",
            ),
            (r#"1 {"lastUpdateId":1,"bids":[]}"#, 31, "missing field `asks`"),
            (r#"1 {"asks":[]}"#, 14, "missing field `lastUpdateId`"),
            (r#"1 {"lastUpdateId":1,"bids":[],"asks":[]} x"#, 42, "expected the end of the line"),
            (r#"1 {"lastUpdateId":-1,"bids":[],"asks":[]}"#, 19, "expected a whole number"),
            (
                r#"1 {"lastUpdateId":1,"bids":[],"asks":[],"data":{}}"#,
                51,
                "`data` and the fields of a snapshot",
            ),
            (r#"1 {"x":1e}"#, 10, "expected a digit"),
            (r#"1 {"\ud800":1}"#, 4, "stands for none"),
        ] {
            let error = parsed(line).expect_err(line).to_string();
            assert!(error.contains(cause), "{line}: {error}");
            assert!(error.ends_with(&format!("(column {column})")), "{line}: {error}");
        }
        let error = parse(b"1 {\"x\":\"\xff\"}", |_| Ok(())).unwrap_err().to_string();
        assert_eq!(error, "malformed record: not UTF-8 (column 9)");
    }

    #[test]
    fn other_streams_are_well_formed_and_nothing_else() {
        for line in [
            "1 {}",
            r#"1 {"result":null,"id":1}"#,
            r#"1 {"error":{"code":2,"msg":"Invalid request"},"id":1e400}"#,
            r#"1 {"stream":"s","data":{}}"#,
            r#"1 {"stream":"s","data":{"e":"fill"}}"#,
            r#"1 {"stream":"x@aggTrade","data":{"e":"aggTrade","a":26129,"p":"0.01","q":"1","m":true}}"#,
            r#"1 {"stream":"x@ticker","data":{"e":"24hrTicker","p":"-0.0015","b":"24.00","a":"25.00"}}"#,
            r#"1 {"stream":"x@forceOrder","data":{"e":"forceOrder","o":{"p":"9910"},"b":[1,["x"]],"u":-1}}"#,
            r#"1 {"stream":"!ticker@arr","data":[{"e":"24hrTicker"}]}"#,
            r#"1 {"stream":"x@depth5","data":{"lastUpdateId":1,"bids":[],"asks":[]}}"#,
            // Whole lists of the best levels, and another book: their events have the name of an update.
            r#"1 {"stream":"x@depth20@100ms","data":{"e":"depthUpdate","s":"X","U":1,"u":2,"pu":0,"b":[],"a":[]}}"#,
            r#"1 {"stream":"x@rpiDepth@500ms","data":{"e":"depthUpdate","s":"X","U":1,"u":2,"pu":0,"b":[],"a":[]}}"#,
            r#"1 {"e":"kline","s":"X","symbol":7}"#,
        ] {
            assert_eq!(parsed(line).map(|(message, _)| message), Ok(Message::Other), "{line}");
            for end in 0..line.len() {
                assert!(parsed(&line[..end]).is_err(), "{}", &line[..end]);
            }
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
        let nested = r#"1 {"x":[[[[1]]]],"lastUpdateId":1,"bids":[["1","\u0031"]],"asks":[]}"#;
        let lines = [DEPTH, SPOT_DEPTH, TICKER, SPOT_TICKER, TRADE, SPOT_TRADE, SNAPSHOT, nested];
        for line in lines {
            let before = calls_of_this_thread();
            let message = parse(line.as_bytes(), |_| Ok(()));
            assert_eq!(calls_of_this_thread() - before, 0, "{line}");
            message.unwrap();
        }
        // An error neither.
        for line in lines {
            let before = calls_of_this_thread();
            let message = parse(&line.as_bytes()[..line.len() - 1], |_| Ok(()));
            assert_eq!(calls_of_this_thread() - before, 0, "{line}");
            message.unwrap_err();
        }
    }

    #[test]
    fn a_sink_without_room_ends_the_parse() {
        assert_eq!(parse(DEPTH.as_bytes(), Err).unwrap_err().cause, Cause::NoRoom);
        let other = r#"1 {"stream":"s","data":{"b":[["1","1"]]}}"#;
        assert_eq!(parse(other.as_bytes(), Err).unwrap_err().cause, Cause::NoRoom);
    }

    proptest! {
        #[test]
        fn a_line_has_no_more_entries_than_its_bound(bids in 0..40_usize, asks in 0..40_usize) {
            // The shortest possible record with this many entries.
            let list = |count| vec![r#"["1","0"]"#; count].join(",");
            let line = format!(r#"1 {{"lastUpdateId":1,"bids":[{}],"asks":[{}]}}"#, list(bids), list(asks));
            let (_, entries) = parsed(&line).unwrap();
            prop_assert_eq!(entries.len(), bids + asks);
            prop_assert!(entries.len() <= entries_bound(line.len()));
        }
    }
}
