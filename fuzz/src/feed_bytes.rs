//! The order book's parser on any bytes.

use crate::decimal::Decimal;
use crate::record::{Entry, Message, entries_bound};
use crate::wire::parse;

/// Parses every line: the result is a record, or an error that says where it is; the
/// entries stay within bounds; and the same holds for a sink that has no room for all
/// of them (design/order-book.md `.req.lost`).
///
/// # Panics
/// If any of that does not hold.
pub fn feed_bytes(data: &[u8]) {
    data.split(|&byte| byte == b'\n').for_each(parse_line);
}

fn parse_line(line: &[u8]) {
    let mut count = 0;
    let parsed = parse_with(line, |entry| {
        assert_exact(entry);
        count += 1;
        true
    });
    assert!(count <= entries_bound(line.len()), "{count} entries in {} bytes", line.len());
    if count > 0 {
        let mut room = count - 1;
        let refused = parse_with(line, |_| {
            room = room.checked_sub(1).unwrap_or(usize::MAX);
            room != usize::MAX
        });
        assert!(refused.is_err(), "a sink without room ends the parse");
    }
    assert_eq!(parsed, parse_with(line, |_| true), "the same bytes give the same answer");
    if let Err(cause) = parsed {
        assert!(cause.starts_with("malformed record: ") && cause.contains("(column "), "{cause}");
        // No text of an error is longer than allowed for the line it is about.
        assert!(cause.len() <= 256 + 6 * line.len(), "{} bytes for {}", cause.len(), line.len());
    }
}

fn parse_with(line: &[u8], mut take: impl FnMut(Entry) -> bool) -> Result<Message, String> {
    parse(line, |entry| if take(entry) { Ok(()) } else { Err(entry) }).map_err(|error| error.to_string())
}

/// Decimals are exact: written and read again, they are the same.
fn assert_exact(entry: Entry) {
    for decimal in [entry.level.price, entry.level.quantity] {
        assert_eq!(Decimal::parse(&decimal.to_string()).ok(), Some(decimal));
    }
}
