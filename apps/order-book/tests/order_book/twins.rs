//! Feeds with a fault, made from sound ones: of the built-in exchange always, and of recorded ones if they are there.
//! Each fault is named, or the book is right in spite of it (design/order-book.md `.sequence`, `.books`, `.tickers`).

use std::io::Read;

use flate2::read::MultiGzDecoder;
use indicatif::ProgressBar;
use order_book::generator::Generator;
use order_book::market::{Market, Play, Profile};
use serde_json::Value;

use crate::feeds::recorded;
use crate::{assert_fails, assert_steady_is_zero, assert_succeeds, run, run_on, scratch_file};

/// Records of a feed: enough for hundreds of updates after each fault.
const RECORDS: usize = 10_000;

/// Records with more updates than any snapshot is ahead of.
const MANY: usize = 24_000;

/// A feed, and what it is called.
#[derive(Clone)]
struct Feed {
    name: String,
    lines: Vec<String>,
}

fn is_update(line: &str) -> bool {
    line.contains(r#""depthUpdate""#)
}

fn is_snapshot(line: &str) -> bool {
    line.contains(r#"{"lastUpdateId""#)
}

impl Feed {
    fn read(name: &str, records: usize, input: impl Read) -> Self {
        let mut text = String::new();
        std::io::BufReader::new(input).read_to_string(&mut text).unwrap();
        let lines = text.lines().take(records).map(str::to_owned).collect();
        Self { name: name.to_owned(), lines }
    }

    fn built_in(market: Market, records: usize) -> Self {
        let (play, progress) = (Play::default(), ProgressBar::hidden());
        let exchange = Generator::new(market, Profile::Normal, records as u64, play, &progress);
        Self::read(&format!("{market:?}"), records, exchange)
    }

    /// The first records of all of them.
    fn all(records: usize) -> Vec<Self> {
        let mut feeds =
            [Market::Futures, Market::Spot].map(|market| Self::built_in(market, records)).to_vec();
        for market in ["usdm", "spot"] {
            if let Some(file) = recorded(market) {
                feeds.push(Self::read(
                    market,
                    records,
                    MultiGzDecoder::new(std::fs::File::open(file).unwrap()),
                ));
            }
        }
        feeds
    }

    fn with(&self, fault: &str, lines: Vec<String>) -> Self {
        Self { name: format!("{}-{fault}", self.name), lines }
    }

    /// The indices of the updates after the first thousand records.
    fn updates(&self) -> Vec<usize> {
        (1_000..self.lines.len()).filter(|&index| is_update(&self.lines[index])).collect()
    }

    fn without(&self, fault: &str, left_out: &[usize]) -> Self {
        let mut lines = self.lines.clone();
        left_out.iter().for_each(|&index| lines[index].clear());
        lines.retain(|line| !line.is_empty());
        self.with(fault, lines)
    }

    fn run(&self, arguments: &[&str]) -> (std::process::Output, Value) {
        let arguments = [arguments, &["--passes", "4"]].concat();
        run_on(&format!("twin-{}", self.name), (self.lines.join("\n") + "\n").as_bytes(), &arguments)
    }

    /// It fails at that line (from zero on) with this cause, and what came before is reported.
    fn assert_fails_at(&self, index: usize, cause: &str) {
        let (output, report) = self.run(&["--warmup", "500"]);
        assert_fails(&output, &format!("line {}: {cause}", index + 1));
        assert_eq!(report["messages"], index, "{}", self.name);
        assert_eq!(report["book_matches_reference"], true, "{}", self.name);
    }
}

/// The figures of a report that say what became of the book.
fn figures(report: &Value) -> Value {
    let keys = ["level_updates", "bid_levels", "ask_levels", "best_bid", "best_ask"];
    Value::Array(keys.map(|key| report[key].clone()).to_vec())
}

#[test]
fn sound_feeds_pass() {
    for feed in Feed::all(RECORDS) {
        let (output, report) = feed.run(&["--warmup", "500"]);
        assert_succeeds(&output);
        assert_steady_is_zero(&report);
        let book = &report["books"][0];
        assert_eq!(book["tickers"]["different"], 0, "{}: {book:#}", feed.name);
        assert!(book["tickers"]["equal"].as_u64() > Some(400), "{}: {book:#}", feed.name);
    }
}

#[test]
fn updates_that_are_missing_are_named_by_their_line() {
    const MISSING: &str = "BTCUSDT: updates are missing: the last one ended at ";
    for feed in Feed::all(RECORDS) {
        let updates = feed.updates();
        let many = &updates[100..300];
        feed.without("cut", many).assert_fails_at(updates[300] - 200, MISSING);
        let every_50th: Vec<_> = updates.iter().copied().skip(49).step_by(50).collect();
        feed.without("some-cut", &every_50th).assert_fails_at(updates[50] - 1, MISSING);
        let mut swapped = feed.clone();
        for pair in updates.chunks_exact(2).take(100) {
            swapped.lines.swap(pair[0], pair[1]);
        }
        feed.with("swapped", swapped.lines).assert_fails_at(updates[0], MISSING);
    }
}

/// With `--gaps report` the run goes on without a book, until there is a snapshot.
#[test]
fn a_gap_that_is_reported_leaves_no_book_until_a_snapshot_comes() {
    for feed in Feed::all(RECORDS) {
        let updates = feed.updates();
        let gap = feed.without("gap", &updates[100..300]);
        let (output, report) = gap.run(&["--warmup", "500", "--gaps", "report"]);
        assert_succeeds(&output);
        assert_steady_is_zero(&report);
        assert_eq!(report["messages"], gap.lines.len());
        assert_eq!(report["book_matches_reference"], true, "{}", feed.name);
        let book = &report["books"][0];
        let first = format!("line {}: updates are missing", updates[300] - 200 + 1);
        assert!(book["first_gap"].as_str().unwrap().starts_with(&first), "{book:#}");
        let snapshot_comes = gap.lines[updates[300]..].iter().any(|line| is_snapshot(line));
        assert_eq!(book["known"], snapshot_comes, "{book:#}");
        assert_eq!(report["bid_levels"].as_u64() > Some(0), snapshot_comes, "{book:#}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(&first), "{output:?}");
    }
}

/// A snapshot may come as late as it likes: what is newer was kept, also in the steady part.
#[test]
fn a_late_snapshot_makes_the_same_book() {
    for feed in Feed::all(RECORDS) {
        let (output, sound) = feed.run(&["--warmup", "500"]);
        assert_succeeds(&output);
        let mut lines = feed.lines.clone();
        let snapshot = lines.remove(lines.iter().position(|line| is_snapshot(line)).unwrap());
        lines.insert(3_000, snapshot);
        let late = feed.with("late", lines);
        let (output, report) = late.run(&["--warmup", "500"]);
        assert_succeeds(&output);
        assert_steady_is_zero(&report);
        assert_eq!(figures(&report), figures(&sound), "{}", feed.name);
        assert_eq!(report["book_matches_reference"], true);
        // With less memory than that takes it is refused by name.
        let (output, _) = late.run(&["--warmup", "500", "--kept", "20"]);
        assert_fails(&output, "memory to keep 20 pieces of updates until then (see --kept)");
    }
}

#[test]
fn a_snapshot_with_a_number_that_is_too_high_is_named() {
    for feed in Feed::all(MANY) {
        let mut lines = feed.lines.clone();
        let snapshot = lines.iter().position(|line| is_snapshot(line)).unwrap();
        let (head, rest) = lines[snapshot].split_once(r#""lastUpdateId":"#).unwrap();
        let wrong = format!(r#"{head}"lastUpdateId":99999999999999{}"#, &rest[rest.find(',').unwrap()..]);
        // A second snapshot as of its own number would bring the book back.
        let lines = lines.drain(..).enumerate();
        let keep =
            |(index, line): (usize, String)| (index == snapshot || !is_snapshot(&line)).then_some(line);
        let mut lines: Vec<_> = lines.filter_map(keep).collect();
        lines.insert(500, wrong);
        let ends = lines[500..].iter().filter(|line| is_update(line)).count() > 1_000;
        let (output, report) = feed.with("high", lines).run(&["--warmup", "400"]);
        if ends {
            assert_fails(&output, "1000 updates in a row are older than the snapshot 99999999999999");
        }
        assert_eq!(report["book_matches_reference"], true, "{}", feed.name);
    }
}

/// The exchange's own best prices find what no number tells.
#[test]
fn an_update_that_lacks_a_level_differs_from_the_ticker() {
    for feed in Feed::all(RECORDS) {
        // An update that empties the levels of the bids changes the best price sooner or later.
        let mut lines = feed.lines.clone();
        let mut first = None;
        for &index in &feed.updates()[..100] {
            let (head, rest) = lines[index].split_once(r#""b":["#).unwrap();
            let (_, tail) = rest.split_once(r#"],"a":"#).unwrap();
            lines[index] = format!(r#"{head}"b":[],"a":{tail}"#);
            first.get_or_insert(index);
        }
        let (output, report) = feed.with("lacking", lines).run(&["--warmup", "500"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let told =
            stderr.lines().find(|line| line.contains("are not those of the book ticker; first at line "));
        let line: usize =
            told.unwrap().split("first at line ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
        assert!(line > first.unwrap(), "{stderr}");
        assert!(report["books"][0]["tickers"]["different"].as_u64() > Some(0), "{report:#}");
        assert_eq!(report["book_matches_reference"], true, "{}", feed.name);
    }
}

/// Without tickers a book that is crossed is a failure still.
#[test]
fn a_crossed_book_is_a_failure() {
    for feed in Feed::all(RECORDS) {
        let mut lines = feed.lines.clone();
        let index = feed.updates()[10];
        let (head, rest) = lines[index].split_once(r#""b":["#).unwrap();
        let comma = if rest.starts_with(']') { "" } else { "," };
        lines[index] = format!(r#"{head}"b":[["99999.00","1"]{comma}{rest}"#);
        lines.retain(|line| !line.contains("bookTicker"));
        let place = lines.iter().position(|line| line.contains(r#"["99999.00""#)).unwrap() + 1;
        let (output, report) = feed.with("crossed", lines).run(&["--warmup", "500"]);
        assert_fails(&output, &format!("first at line {place}: the best bid is not below the best ask"));
        assert!(report["books"][0]["updates_crossed"].as_u64() > Some(0), "{report:#}");
    }
}

/// The messages of `/ws/<stream>`, without `stream` and `data` around them.
#[test]
fn messages_that_stand_alone_make_the_same_book() {
    for feed in Feed::all(RECORDS) {
        let (_, sound) = feed.run(&["--warmup", "500"]);
        let alone = |line: &String| match line.split_once(r#""data":"#) {
            Some((head, data)) => {
                format!("{} {}", head.split_once(' ').unwrap().0, data.strip_suffix('}').unwrap())
            }
            None => line.clone(),
        };
        let (output, report) =
            feed.with("alone", feed.lines.iter().map(alone).collect()).run(&["--warmup", "500"]);
        assert_succeeds(&output);
        assert_eq!(figures(&report), figures(&sound), "{}", feed.name);
        assert_eq!(report["books"], sound["books"], "{}", feed.name);
        assert_eq!(report["skipped"], serde_json::json!({}));
    }
}

/// Whole lists of the best levels, and the other book, are counted and never applied.
#[test]
fn lists_of_the_best_levels_are_no_updates() {
    for feed in Feed::all(RECORDS) {
        for stream in ["@depth20@100ms\"", "@rpiDepth@500ms\""] {
            let other = |line: &String| match line.split_once("@depth") {
                Some((head, rest)) => format!("{head}{stream}{}", rest.split_once('"').unwrap().1),
                None => line.clone(),
            };
            let (output, report) =
                feed.with("best", feed.lines.iter().map(other).collect()).run(&["--warmup", "500"]);
            assert_fails(
                &output,
                "no depth update was applied: there is none in the input, only records that",
            );
            assert_eq!((&report["depth_updates"], &report["level_updates"]), (&0.into(), &0.into()));
        }
        // Without the name of the stream they look like snapshots.
        let mut lines = feed.lines.clone();
        let side =
            |price: u32| (0..20).map(|level| format!(r#"["{}.00","1"]"#, price + level)).collect::<Vec<_>>();
        let (bids, asks) = (side(50_000).join(","), side(70_000).join(","));
        lines
            .insert(2_000, format!(r#"1 {{"lastUpdateId":99999999999999,"bids":[{bids}],"asks":[{asks}]}}"#));
        feed.with("list", lines)
            .assert_fails_at(2_000, "BTCUSDT: 20 levels a side, and the book has more: a list of the best");
    }
}

/// A book for each symbol. A snapshot that does not say whose it is, is refused if there are several.
#[test]
fn two_symbols_are_two_books() {
    for feed in Feed::all(RECORDS) {
        let (_, sound) = feed.run(&["--warmup", "500"]);
        let named = |symbol: &str, line: &String| {
            let line = line.replace("BTCUSDT", symbol).replace("btcusdt", &symbol.to_lowercase());
            line.replace(r#"{"lastUpdateId""#, &format!(r#"{{"symbol":"{symbol}","lastUpdateId""#))
        };
        let merged = |name: &dyn Fn(&str, &String) -> String| {
            let both = |line| ["BTCUSDT", "ETHUSDT"].map(|symbol| name(symbol, line));
            feed.lines.iter().flat_map(both).collect::<Vec<_>>()
        };
        let (output, report) = feed.with("two", merged(&named)).run(&["--warmup", "500"]);
        assert_succeeds(&output);
        assert_steady_is_zero(&report);
        let [first, second] = &report["books"].as_array().unwrap()[..] else { panic!("{report:#}") };
        for (book, symbol) in [(first, "BTCUSDT"), (second, "ETHUSDT")] {
            let mut book = book.clone();
            assert_eq!(book["symbol"], symbol);
            book["symbol"] = "BTCUSDT".into();
            assert_eq!(book, sound["books"][0], "{}", feed.name);
        }
        assert_eq!((&report["best_bid"], &report["book_matches_reference"]), (&Value::Null, &true.into()));
        // There is memory for one only.
        let (output, _) = feed.with("two", merged(&named)).run(&["--symbols", "1"]);
        assert_fails(&output, "no memory for a book of ETHUSDT: there are 1 (see --symbols)");

        let nameless = |symbol: &str, line: &String| {
            named(symbol, line).replace(&format!(r#""symbol":"{symbol}","#), "")
        };
        let (output, report) = feed.with("whose", merged(&nameless)).run(&["--warmup", "500"]);
        assert_fails(&output, "without a symbol");
        assert_eq!(report["book_matches_reference"], true, "{}", feed.name);
    }
}

/// The three lines that a book which replaces itself by each snapshot makes 9.00 and 11.00 of.
#[test]
fn an_update_that_is_newer_than_the_snapshot_after_it_is_kept() {
    let lines = [
        r#"1 {"stream":"x@depth","data":{"e":"depthUpdate","s":"X","U":8,"u":20,"pu":7,"b":[["8.00","1"],["9.00","0"]],"a":[["8.50","1"]]}}"#,
        r#"2 {"lastUpdateId":10,"bids":[["9.00","1"]],"asks":[["11.00","1"]]}"#,
        r#"3 {"stream":"x@bookTicker","data":{"e":"bookTicker","s":"X","u":20,"b":"8.00","B":"1","a":"8.50","A":"1"}}"#,
    ];
    let (output, report) = run_on("three-lines", lines.join("\n").as_bytes(), &[]);
    assert_succeeds(&output);
    assert_eq!((&report["best_bid"], &report["best_ask"]), (&"8.00".into(), &"8.50".into()));
    assert_eq!(report["books"][0]["tickers"]["equal"], 1);
    assert_eq!(report["book_matches_reference"], true);
}

/// A snapshot is not without updates, nor updates without a snapshot.
#[test]
fn a_run_without_an_update_is_no_success() {
    let update = |number: u64| {
        format!(r#"1 {{"e":"depthUpdate","s":"X","U":{number},"u":{number},"b":[["1.00","1"]],"a":[]}}"#)
    };
    let snapshot = |number: u64| format!(r#"1 {{"lastUpdateId":{number},"bids":[],"asks":[["2.00","1"]]}}"#);
    for (lines, why) in [
        (vec![snapshot(1)], "there is none in the input"),
        (vec![update(1), update(2)], "there is no snapshot that covers them"),
        (vec![snapshot(5), update(1), update(2)], "no snapshot fits them"),
        (vec![update(5), snapshot(3), update(6)], "no snapshot fits them"),
        (vec![r#"1 {"result":null,"id":1}"#.to_owned()], "there is none in the input, only records"),
    ] {
        let (output, report) = run_on("no-update", lines.join("\n").as_bytes(), &[]);
        assert_fails(&output, &format!("no depth update was applied: {why}"));
        assert_eq!(report["book_matches_reference"], true, "{why}: {report:#}");
    }
}

/// One input after the other: a day in two files, or a file for each symbol.
#[test]
fn several_inputs_are_read_in_turn() {
    let feed = Feed::built_in(Market::Futures, RECORDS);
    let (_, sound) = feed.run(&["--warmup", "500"]);
    let write = |name: &str, lines: &[String]| {
        let path = scratch_file(name);
        std::fs::write(&path, lines.join("\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (first, second) = (write("day-1", &feed.lines[..2_000]), write("day-2", &feed.lines[2_000..]));
    let (output, report) = run("days", &["--input", &first, "--input", &second, "--warmup", "500"]);
    assert_succeeds(&output);
    assert_steady_is_zero(&report);
    assert_eq!((figures(&report), &report["books"]), (figures(&sound), &sound["books"]));

    let other: Vec<_> = feed.lines.iter().map(|line| line.replace("BTCUSDT", "ETHUSDT")).collect();
    let second = write("other-symbol", &other);
    let first = write("one-symbol", &feed.lines);
    let (output, report) = run("symbols", &["--input", &first, "--input", &second, "--warmup", "500"]);
    assert_succeeds(&output);
    let symbols: Vec<_> = report["books"].as_array().unwrap().iter().map(|book| &book["symbol"]).collect();
    assert_eq!(symbols, ["BTCUSDT", "ETHUSDT"]);
    assert_eq!(report["book_matches_reference"], true);

    // The second begins with a snapshot that is older than the book, and a failure has its name.
    let snapshot = feed.lines.iter().position(|line| is_snapshot(line)).unwrap();
    let lines = [&feed.lines[snapshot..=snapshot], &feed.lines[..100], &["nothing".to_owned()][..]].concat();
    let second = write("again", &lines);
    let (output, report) = run("again", &["--input", &first, "--input", &second, "--warmup", "500"]);
    assert_fails(&output, "again: line 102: malformed record");
    assert!(report["books"][0]["snapshots_old"].as_u64() >= Some(1), "{report:#}");
    assert_eq!(report["book_matches_reference"], true, "{report:#}");
}

/// What comes out, beside the report.
#[test]
fn best_prices_and_levels_are_written() {
    let feed = [
        r#"5 {"lastUpdateId":1,"bids":[["9.00","1"]],"asks":[["11.00","1"],["12.00","0.5"]]}"#,
        r#"6 {"e":"depthUpdate","s":"X","U":2,"u":2,"b":[],"a":[]}"#,
        r#"7 {"e":"depthUpdate","s":"X","U":3,"u":3,"b":[["8.00","2"]],"a":[]}"#,
        r#"8 {"e":"depthUpdate","s":"X","U":4,"u":4,"b":[],"a":[["11.00","0"]]}"#,
        r#"9 {"e":"depthUpdate","s":"X","U":9,"u":9,"b":[],"a":[]}"#,
        r#"10 {"lastUpdateId":9,"bids":[["7.00","1"]],"asks":[]}"#,
        r#"11 {"e":"depthUpdate","s":"X","U":10,"u":10,"b":[["6.50","3"]],"a":[]}"#,
    ];
    let (tops, book) = (scratch_file("tops.txt"), scratch_file("book.txt"));
    let arguments = [
        "--gaps",
        "report",
        "--tops",
        tops.to_str().unwrap(),
        "--book",
        book.to_str().unwrap(),
        "--no-reference",
    ];
    let (output, report) = run_on("written", feed.join("\n").as_bytes(), &arguments);
    assert_succeeds(&output);
    assert_eq!(report["book_matches_reference"], Value::Null);
    let read = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&tops), "6 X 9.00 11.00\n8 X 9.00 12.00\n9 X - -\n11 X 7.00 -\n");
    assert_eq!(read(&book), "X bid 7.00 1.00\nX bid 6.50 3.00\n");
}

/// Writing them costs the hot thread nothing of what it must not cost.
#[test]
fn best_prices_are_noted_at_no_cost() {
    let tops = scratch_file("many-tops.txt");
    let arguments = ["--messages", "20000", "--warmup", "5000", "--pin", "--tops", tops.to_str().unwrap()];
    let (output, report) = run("many-tops", &arguments);
    assert_succeeds(&output);
    assert_steady_is_zero(&report);
    let written = std::fs::read_to_string(&tops).unwrap();
    let last = written.lines().last().unwrap();
    let best = |key: &str| report[key].as_str().unwrap().to_owned();
    assert!(last.ends_with(&format!("BTCUSDT {} {}", best("best_bid"), best("best_ask"))), "{last}");
    let summary = String::from_utf8_lossy(&output.stdout);
    match report["pinned_to"].as_u64() {
        Some(processor) => {
            assert!(summary.contains(&format!("processor {processor} to itself")), "{summary}")
        }
        None => assert!(summary.contains("not pinned"), "{summary}"),
    }
}

#[test]
fn records_are_handed_on_as_late_as_they_were_received() {
    let feed = [
        r#"1000000000 {"lastUpdateId":1,"bids":[["9.00","1"]],"asks":[["11.00","1"]]}"#,
        r#"1400000000 {"e":"depthUpdate","s":"X","U":2,"u":2,"b":[],"a":[]}"#,
    ];
    let begin = std::time::Instant::now();
    let (output, _) = run_on("paced", feed.join("\n").as_bytes(), &["--as-recorded"]);
    assert_succeeds(&output);
    assert!(begin.elapsed() >= core::time::Duration::from_millis(400));
}
