//! Feeds of a few records, made here.

use std::path::{Path, PathBuf};

pub(crate) use decompress::compress::{gzip, zstd};

/// Records of every kind, in the spot dialect with a snapshot at line 3: the update at line 1 is older than it.
pub(crate) fn small_feed(lines: usize) -> Vec<u8> {
    let mut feed = String::new();
    for line in 1..=lines {
        let record = match line % 4 {
            0 => r#"{"stream":"btcusdt@bookTicker","data":{"u":5,"b":"10.00","B":"1","a":"11.00","A":"1"}}"#
                .to_owned(),
            1 => format!(
                r#"{{"stream":"btcusdt@depth","data":{{"e":"depthUpdate","U":{},"u":{line},"b":[["9.{line:05}","1.5"]],"a":[["11.00","2"]]}}}}"#,
                line.saturating_sub(3).max(1)
            ),
            2 => r#"{"stream":"btcusdt@trade","data":{"e":"trade","p":"10.00","q":"0.5"}}"#.to_owned(),
            _ if line == 3 => {
                r#"{"lastUpdateId":4,"bids":[["10.00","1"]],"asks":[["12.00","1"]]}"#.to_owned()
            }
            _ => r#"{"stream":"btcusdt@depth","data":{"e":"depthUpdate","U":2,"u":3,"b":[["99.00","1"]],"a":[]}}"#
                .to_owned(),
        };
        feed.push_str(&format!("{line} {record}\n"));
    }
    feed.into_bytes()
}

/// The recorded feed of a market, if it is there.
pub(crate) fn recorded(market: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let feed = folder.join(format!("{market}_btcusdt_20240808.gz"));
    if !feed.exists() {
        tripoint_oracle::skipped!("no recorded feed at {}", feed.display());
    }
    Some(feed).filter(|feed| feed.exists())
}

/// A feed whose line 10, in the steady part, is not a record.
pub(crate) fn malformed_feed() -> Vec<u8> {
    let mut feed = small_feed(9);
    feed.extend_from_slice(b"10 {\"stream\":\"s\",\"data\":{\"e\":\"trade\",\"p\":\"1.0.0\",\"q\":\"1\"}}\n");
    feed.extend_from_slice(&small_feed(4));
    feed
}

/// A feed whose line 10 has 40 levels: there is no memory for the last of them.
pub(crate) fn growing_feed() -> Vec<u8> {
    let mut feed = small_feed(9);
    let levels: Vec<_> = (0..40).map(|level| format!(r#"["{level}.01","1"]"#)).collect();
    let depth = format!(
        r#"10 {{"stream":"btcusdt@depth","data":{{"e":"depthUpdate","U":10,"u":10,"b":[{}],"a":[]}}}}"#,
        levels.join(",")
    );
    feed.extend_from_slice(depth.as_bytes());
    feed.push(b'\n');
    feed.extend_from_slice(&small_feed(4));
    feed
}

/// A snapshot, and an update on top of it: without one a run is no success.
pub(crate) const BEGIN: &str = r#"1 {"lastUpdateId":1,"bids":[["9.00","1"]],"asks":[["11.00","1"]]}
2 {"stream":"x@depth","data":{"e":"depthUpdate","U":2,"u":2,"b":[],"a":[]}}
"#;

/// The shortest trades there are, at 97 prices at most, and two records after them.
pub(crate) fn trades_feed(lines: usize) -> Vec<u8> {
    let trade = |line| {
        let price = 1 + line * line % 97;
        format!("{line} {{\"e\":\"trade\",\"s\":\"X\",\"p\":\"{price}\",\"q\":\"1\"}}\n")
    };
    ((1..=lines).map(trade).collect::<String>() + BEGIN).into_bytes()
}
