//! What comes out: best prices, trades, levels (design/exchange.md `.out`).

use super::*;

/// A message with its length, for the stock of code 7, as specified: fields behind the header as they are.
fn message(kind: u8, time: u64, fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    let mut message = ((11 + body.len()) as u16).to_be_bytes().to_vec();
    message.extend_from_slice(&[kind, 0, 7, 0, 0]);
    message.extend_from_slice(&time.to_be_bytes()[2..]);
    message.extend_from_slice(&body);
    message
}

fn id(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn add(time: u64, number: u64, side: u8, shares: u32, price: u32) -> Vec<u8> {
    message(b'A', time, &[&id(number), &[side], &shares.to_be_bytes(), b"ABC     ", &price.to_be_bytes()])
}

/// A day by hand, with every message that is a trade.
fn day() -> Vec<u8> {
    let shares = |shares: u32| shares.to_be_bytes();
    let price = |price: u32| price.to_be_bytes();
    [
        message(b'S', 1, &[b"O"]),
        message(b'R', 2, &[b"ABC     ", b"QN", &shares(100), b"NCZ PNN1N", &shares(0), b"N"]),
        add(3, 1, b'B', 100, 99_000),
        add(4, 2, b'S', 300, 101_000),
        add(5, 3, b'B', 50, 98_000),
        message(b'E', 6, &[&id(2), &shares(100), &id(901)]),
        message(b'C', 7, &[&id(2), &shares(50), &id(902), b"Y", &price(100_500)]),
        message(b'C', 8, &[&id(2), &shares(50), &id(903), b"N", &price(100_400)]),
        message(b'P', 9, &[&id(0), b"B", &shares(7), b"ABC     ", &price(99_500), &id(904)]),
        message(b'B', 10, &[&id(904)]),
        message(b'D', 11, &[&id(1)]),
        message(b'E', 12, &[&id(2), &shares(100), &id(905)]),
        message(b'U', 13, &[&id(3), &id(4), &shares(60), &price(98_500)]),
        message(b'Q', 14, &[&id(5_000), b"ABC     ", &price(99_000), &id(906), b"C"]),
        message(b'Q', 15, &[&id(0), b"ABC     ", &price(99_000), &id(907), b"C"]),
        add(16, 5, b'S', 10, 120_000),
        add(17, 6, b'B', 5, 98_500),
    ]
    .concat()
}

#[test]
fn a_day_by_hand_is_written_as_it_was() {
    let [book, tops, trades] = ["hand-book", "hand-tops", "hand-trades"].map(|name| file(name, ""));
    let outputs = ["--book", &book, "--tops", &tops, "--trades", &trades];
    let ran = run_input(&day(), &outputs);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let read = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(
        read(&tops),
        "3 ABC 9.9000 -\n4 ABC 9.9000 10.1000\n11 ABC 9.8000 10.1000\n12 ABC 9.8000 -\n13 ABC 9.8500 -\n\
         16 ABC 9.8500 12.0000\n"
    );
    assert_eq!(
        read(&trades),
        "6 ABC 10.1000 100 901 E\n7 ABC 10.0500 50 902 C\n8 ABC 10.0400 50 903 N\n9 ABC 9.9500 7 904 P\n\
         10 ABC - - 904 B\n12 ABC 10.1000 100 905 E\n14 ABC 9.9000 5000 906 Q\n"
    );
    assert_eq!(read(&book), "ABC bid 9.8500 65 2\nABC ask 12.0000 10 1\n");
}

/// What ends a run ends no output before it.
#[test]
fn what_came_before_a_failure_is_written() {
    let [book, tops] = ["cut-book", "cut-tops"].map(|name| file(name, ""));
    let day = day();
    let ran = run_input(&day[..day.len() - 3], &["--book", &book, "--tops", &tops]);
    assert_eq!(ran.status.code(), Some(1));
    let read = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&tops).lines().last(), Some("16 ABC 9.8500 12.0000"));
    assert_eq!(read(&book), "ABC bid 9.8500 60 1\nABC ask 12.0000 10 1\n");
    let ran = run_input(&day, &["--tops", "no/such/folder/tops"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains("no/such/folder/tops: "), "{}", text(&ran.stderr));
}

/// (design/exchange.md `.req.zero`)
#[test]
fn outputs_cost_the_steady_part_nothing() {
    let [book, tops, trades] = ["zero-book", "zero-tops", "zero-trades"].map(|name| file(name, ""));
    let ran = run_small(&["--book", &book, "--tops", &tops, "--trades", &trades]);
    assert_zeros(&ran);
    let summary = text(&ran.stdout);
    assert_eq!(
        value(&summary, "hash of all books"),
        value(&text(&run_small(&[]).stdout), "hash of all books")
    );
    let [book, tops, trades] = [book, tops, trades].map(|path| std::fs::read_to_string(path).unwrap());
    // The last best prices of each stock are those of its levels.
    let mut of_tops = std::collections::BTreeMap::new();
    for line in tops.lines() {
        let [_, stock, bid, ask] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        of_tops.insert(stock, (bid, ask));
    }
    of_tops.retain(|_, best| *best != ("-", "-"));
    let mut of_book = std::collections::BTreeMap::new();
    for line in book.lines().rev() {
        let [stock, side, price, _, _] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let best = of_book.entry(stock).or_insert(("-", "-"));
        if side == "bid" { best.0 = price } else { best.1 = price }
    }
    assert!(of_book.len() > 10 && of_tops == of_book, "{of_tops:?} {of_book:?}");
    let count = |kind: &str| {
        let line = value(&summary, kind);
        line.split(' ').next().unwrap().replace(',', "").parse::<usize>().unwrap()
    };
    let of_types =
        count("E execute ") + count("C execute at price") + count("P trade") + count("B broken trade");
    assert_eq!(trades.lines().count(), of_types);
}
