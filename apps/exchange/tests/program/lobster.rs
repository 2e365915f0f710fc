//! Files of LOBSTER, made here from generated days by its description (design/exchange.md `.lobster`).

use core::fmt::Write as _;
use std::collections::{BTreeMap, HashMap};

use exchange::day::{Day, DayOptions};

use super::*;

/// A line of the message file, and the line of the orderbook file that belongs to it.
struct Event {
    line: String,
    row: String,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The shares at each price: of asks, and of bids.
#[derive(Default)]
struct Levels([BTreeMap<u64, u64>; 2]);

impl Levels {
    fn change(&mut self, is_buy: bool, price: u64, shares: i64) {
        let level = self.0[usize::from(is_buy)].entry(price).or_insert(0);
        *level = level.checked_add_signed(shares).unwrap();
        self.0[usize::from(is_buy)].retain(|_, shares| *shares > 0);
    }

    fn row(&self, levels: usize) -> String {
        let (mut asks, mut bids) = (self.0[0].iter(), self.0[1].iter().rev());
        let fields = (0..levels).flat_map(|_| {
            let text = |level: Option<(&u64, &u64)>, none: &str| {
                level.map_or_else(|| format!("{none},0"), |(price, shares)| format!("{price},{shares}"))
            };
            [text(asks.next(), "9999999999"), text(bids.next(), "-9999999999")]
        });
        fields.collect::<Vec<_>>().join(",")
    }
}

/// A day of one stock. A replaced order is deleted and added.
fn events(options: DayOptions, levels: usize) -> (Vec<u8>, Vec<Event>) {
    let mut day = Vec::new();
    Day::new(options).fill(&mut day, usize::MAX);
    let (mut orders, mut book, mut events) = (HashMap::new(), Levels::default(), Vec::new());
    let mut rest = &day[..];
    while !rest.is_empty() {
        let length = number(rest, 0, 2) as usize;
        let message = &rest[2..2 + length];
        rest = &rest[2 + length..];
        let time = number(message, 5, 6);
        let id = if length >= 19 { number(message, 11, 8) } else { 0 };
        let mut push = |book: &Levels, kind: u8, id: u64, shares: u64, price: u64, is_buy: bool| {
            let direction = if is_buy { 1 } else { -1 };
            let (seconds, below) = (time / 1_000_000_000, time % 1_000_000_000);
            let line = format!("{seconds}.{below:09},{kind},{id},{shares},{price},{direction}");
            events.push(Event { line, row: book.row(levels) });
        };
        match message[0] {
            b'A' | b'F' => {
                let (is_buy, shares, price) =
                    (message[19] == b'B', number(message, 20, 4), number(message, 32, 4));
                orders.insert(id, (is_buy, shares, price));
                book.change(is_buy, price, shares as i64);
                push(&book, 1, id, shares, price, is_buy);
            }
            kind @ (b'E' | b'C' | b'X') => {
                let shares = number(message, 19, 4);
                let order = orders.get_mut(&id).unwrap();
                order.1 -= shares;
                let (is_buy, left, price) = *order;
                book.change(is_buy, price, -(shares as i64));
                push(&book, if kind == b'X' { 2 } else { 4 }, id, shares, price, is_buy);
                if left == 0 {
                    orders.remove(&id);
                }
            }
            kind @ (b'D' | b'U') => {
                let (is_buy, shares, price) = orders.remove(&id).unwrap();
                book.change(is_buy, price, -(shares as i64));
                push(&book, 3, id, shares, price, is_buy);
                if kind == b'U' {
                    let (new, shares, price) =
                        (number(message, 19, 8), number(message, 27, 4), number(message, 31, 4));
                    orders.insert(new, (is_buy, shares, price));
                    book.change(is_buy, price, shares as i64);
                    push(&book, 1, new, shares, price, is_buy);
                }
            }
            b'P' => push(&book, 5, 0, number(message, 20, 4), number(message, 32, 4), true),
            b'H' => events.push(Event { line: "34200.5,7,0,0,-1,-1".to_owned(), row: book.row(levels) }),
            _ => {}
        }
    }
    (day, events)
}

const OPTIONS: DayOptions = DayOptions { seed: 5, messages: 40_000, live: 300, symbols: 1 };

/// Writes both files.
fn files<'e>(name: &str, events: impl IntoIterator<Item = &'e Event>) -> [String; 2] {
    let (mut lines, mut rows) = (String::new(), String::new());
    for Event { line, row } in events {
        writeln!(lines, "{line}").unwrap();
        writeln!(rows, "{row}").unwrap();
    }
    let name = |what| format!("{name}_2012-06-21_34200000_57600000_{what}_10.csv");
    [file(&name("message"), lines), file(&name("orderbook"), rows)]
}

fn run_files([lines, rows]: &[String; 2], more: &[&str]) -> Output {
    let arguments = ["run", "--room", "10000", "--warmup", "10000", "--input", lines, "--orderbook", rows];
    exchange(&[&arguments[..], more].concat())
}

/// Only messages that change the levels that are shown, as LOBSTER has them.
fn in_sight(events: &[Event]) -> Vec<&Event> {
    let mut before = "";
    let mut shown = Vec::new();
    for event in events {
        if event.row != before {
            shown.push(event);
        }
        before = &event.row;
    }
    shown
}

fn levels_of(book: &str) -> Vec<(String, String, String, String)> {
    let fields = |line: &str| {
        let fields: Vec<_> = line.split(' ').map(str::to_owned).collect();
        (fields[1].clone(), fields[2].clone(), fields[3].clone(), fields[4].clone())
    };
    std::fs::read_to_string(book).unwrap().lines().map(fields).collect()
}

/// A day of ITCH and the same in lines lead to the same levels (design/exchange.md `.req.forms`, `.req.zero`).
#[test]
fn a_day_in_lines_has_the_books_of_itch() {
    let (day, events) = events(OPTIONS, 10);
    // Of a day that is over nothing is left, so its last part is not read.
    let events = &events[..events.len() * 9 / 10];
    let [of_lines, tops, trades] = ["lines-book", "lines-tops", "lines-trades"].map(|name| file(name, ""));
    let [lines, rows] = files("whole", events);
    let outputs = ["--book", &of_lines, "--tops", &tops, "--trades", &trades];
    let ran = exchange(
        &[&["run", "--room", "10000", "--warmup", "10000", "--input", &lines], &outputs[..]].concat(),
    );
    assert_zeros(&ran);
    let summary = text(&ran.stdout);
    assert!(!summary.contains("unknown orders") && !summary.contains("orderbook file"), "{summary}");
    // The part of ITCH that these lines are: one line for each message of the book, and two for `U`.
    let (mut at, mut count) = (0, 0);
    while count < events.len() {
        count += match day[at + 2] {
            b'S' | b'R' | b'Q' | b'B' | b'I' => 0,
            b'U' => 2,
            _ => 1,
        };
        at += 2 + number(&day, at, 2) as usize;
    }
    assert_eq!(count, events.len(), "the cut is within a replaced order: choose another");
    let of_itch = file("itch-book", "");
    let ran = run_input(&day[..at], &["--book", &of_itch]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(levels_of(&of_lines).len() > 20, "{}", levels_of(&of_lines).len());
    assert_eq!(levels_of(&of_lines), levels_of(&of_itch));
    let trades = std::fs::read_to_string(trades).unwrap();
    let executed = events.iter().filter(|event| matches!(event.line.split(',').nth(1), Some("4" | "5")));
    assert_eq!(trades.lines().count(), executed.count());
    let tops = std::fs::read_to_string(tops).unwrap();
    let best = |side: &str| levels_of(&of_lines).into_iter().find(|level| level.0 == side).unwrap().1;
    let last = tops.lines().last().unwrap();
    assert!(last.ends_with(&format!(" {} {}", best("bid"), best("ask"))), "{last}");
    // And nothing differs from the levels of the other file.
    let ran = run_files(&[lines, rows], &[]);
    assert_zeros(&ran);
    let compared = value(&text(&ran.stdout), "orderbook file");
    assert!(compared.contains(" lines, 0 levels differ, "), "{compared}");
}

/// What was there before the file, and what changes where it does not look, are no faults.
#[test]
fn a_file_that_begins_within_a_day_agrees_with_its_orderbook() {
    let (_, all) = events(OPTIONS, 3);
    let shown = in_sight(&all[all.len() / 3..all.len() * 9 / 10]);
    assert!(shown.len() > 1_000, "{}", shown.len());
    let last = shown.last().unwrap().row.clone();
    let book = file("within-book", "");
    let ran = run_files(&files("within", shown), &["--book", &book]);
    let summary = text(&ran.stdout);
    assert!(ran.status.success(), "{summary}{}", text(&ran.stderr));
    assert!(value(&summary, "orderbook file").contains(" 0 levels differ, "), "{summary}");
    assert!(value(&summary, "unknown orders").contains("messages about orders from before the file"));
    let best: Vec<_> = levels_of(&book).into_iter().filter(|(side, ..)| side == "ask").take(3).collect();
    let fields: Vec<u64> =
        last.split(',').step_by(2).step_by(2).map(|price| price.parse().unwrap()).collect();
    let prices: Vec<_> = fields.iter().map(|at| format!("{}.{:04}", at / 10_000, at % 10_000)).collect();
    assert_eq!(best.into_iter().map(|(_, price, ..)| price).collect::<Vec<_>>(), prices);
}

/// The twin: a message that says something else than the orderbook file.
#[test]
fn a_line_that_differs_from_its_orderbook_is_named() {
    let (_, mut all) = events(OPTIONS, 10);
    let at = (9_000..).find(|at| {
        let mut fields = all[*at].line.split(',').skip(1);
        fields.next() == Some("1") && all[*at].row != all[at - 1].row
    });
    let at = at.unwrap();
    let mut fields: Vec<_> = all[at].line.split(',').map(str::to_owned).collect();
    fields[3] = (fields[3].parse::<u64>().unwrap() + 1).to_string();
    all[at].line = fields.join(",");
    let ran = run_files(&files("flaw", &all), &[]);
    assert_eq!(ran.status.code(), Some(1));
    let stderr = text(&ran.stderr);
    assert!(stderr.contains(&format!("message_10.csv: line {}: ", at + 1)), "{stderr}");
    assert!(stderr.contains("in the orderbook file, and"), "{stderr}");
    assert!(!value(&text(&ran.stdout), "orderbook file").contains(" 0 levels differ"));
}

#[test]
fn several_files_are_a_book_each() {
    let (_, all) = events(OPTIONS, 10);
    let [first, second] = [files("first", &all[..5_000]), files("second", &all[..5_000])];
    let book = file("two-books", "");
    let arguments = ["run", "--room", "10000", "--book", &book, "--input", &first[0], &second[0]];
    let ran = exchange(&[&arguments[..], &["--orderbook", &first[1], &second[1]]].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let levels = levels_of(&book);
    let (of_first, of_second) = levels.split_at(levels.len() / 2);
    assert!(!of_first.is_empty() && of_first == of_second);
    // One has no orderbook file, or it is of other lines.
    let ran = exchange(&[&arguments[..], &["--orderbook", &first[1]]].concat());
    assert!(text(&ran.stderr).contains("1 orderbook files for 2 inputs"), "{}", text(&ran.stderr));
    let short = files("short", &all[..4_999]);
    let ran = exchange(&["run", "--input", &first[0], "--orderbook", &short[1]]);
    assert!(text(&ran.stderr).contains("has fewer lines than there are messages"), "{}", text(&ran.stderr));
    assert_eq!(value(&text(&ran.stdout), "messages"), "4,999");
}

/// (design/exchange.md `.req.damage`)
#[test]
fn what_is_no_line_is_named_by_its_place() {
    let lines = "34200.1,1,5,100,1000000,1\n34200.2,1,6,100,1010000,-1\n";
    for (line, why) in [
        ("34200.3,1,7,100,1000000\n", "line 3: 5 fields, and a line of LOBSTER has six"),
        ("34200.3,9,7,100,1000000,1\n", "line 3: field 2, the type, has to be from 1 to 7"),
        ("34200.3,1,5,100,1000000,1\n", "line 3: duplicate-order: order 5 is live already"),
        ("34200.3,4,6,101,1010000,-1\n", "line 3: too-many-shares: order 6 has 100 shares"),
        ("34200.3,1,7,100,100", "line 3: 5 fields"),
    ] {
        let ran = run_input(format!("{lines}{line}").as_bytes(), &[]);
        assert_eq!(ran.status.code(), Some(1), "{line}");
        assert!(text(&ran.stderr).contains(why), "{why}: {}", text(&ran.stderr));
        assert_eq!(value(&text(&ran.stdout), "live orders"), "2, at most 2");
    }
    // An order that is not known came before the file.
    let ran = run_input(format!("{lines}34200.3,3,7,100,1000000,1\n").as_bytes(), &[]);
    assert!(ran.status.success());
    let unknown = value(&text(&ran.stdout), "unknown orders");
    assert_eq!(unknown, "1 messages about orders from before the file, first at -: line 3");
    let itch = exchange(&[&["day"], &SMALL[..]].concat()).stdout;
    let [itch, lines] = [file("a-day", itch), file("some-lines", lines)];
    let ran = exchange(&["run", "--input", &itch, &lines]);
    assert!(text(&ran.stderr).contains("cannot be one run"), "{}", text(&ran.stderr));
    let ran = exchange(&["run", "--input", &itch, "--orderbook", &lines]);
    assert!(text(&ran.stderr).contains("only files of LOBSTER have one"), "{}", text(&ran.stderr));
}
