//! The steady part of days that are not quiet: a burst, the recorded pace, half a day (design/exchange.md `.run`).

use super::inputs::small_day;
use super::*;

/// (design/exchange.md `.run.burst`)
#[test]
fn a_burst_costs_the_steady_part_nothing() {
    let day = ["run", "--messages", "120000", "--live", "2000", "--symbols", "50", "--warmup", "20000"];
    let ran = exchange(&[&day[..], &["--burst"]].concat());
    assert_zeros(&ran);
    let most = |ran: &Output| {
        let live = value(&text(&ran.stdout), "live orders");
        live.split_once("at most ").unwrap().1.replace(',', "").parse::<usize>().unwrap()
    };
    let quiet = exchange(&day);
    assert!(most(&ran) > 20_000 && most(&quiet) < 6_000, "{} {}", most(&ran), most(&quiet));
    let ran = exchange(&["run", "--messages", "60000", "--live", "20000", "--burst"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains("needs 40 messages for each"), "{}", text(&ran.stderr));
}

/// (design/exchange.md `.run.pace`)
#[test]
fn messages_wait_until_they_are_due() {
    let day = day_of(&small_day());
    let end = day.last().unwrap().0;
    let first = day[20_000].0;
    // As fast as lets the steady part last half a second.
    let speed = ((end - first) as f64 / 5e8).to_string();
    let whole = day.into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<_>>();
    let ran = run_input(&whole, &["--as-recorded", &speed]);
    assert_zeros(&ran);
    let pace = value(&text(&ran.stdout), "pace");
    assert!(pace.starts_with(&speed) && !pace.contains(" 0 messages"), "{pace}");
    let at_once = run_input(&whole, &[]);
    let hash = |ran: &Output| value(&text(&ran.stdout), "hash of all books");
    assert_eq!(hash(&ran), hash(&at_once));
    for wrong in ["0", "-1", "inf", "fast"] {
        assert_eq!(run_small(&[&format!("--as-recorded={wrong}")]).status.code(), Some(2), "{wrong}");
    }
}

/// The messages of a day, with their times: the six bytes behind the length, the type, the stock and the tracking number.
fn day_of(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut messages = Vec::new();
    let mut rest = bytes;
    while let [high, low, ..] = rest {
        let (message, others) = rest.split_at(2 + usize::from(u16::from_be_bytes([*high, *low])));
        let time = message[7..13].iter().fold(0, |time, &byte| time << 8 | u64::from(byte));
        messages.push((time, message.to_vec()));
        rest = others;
    }
    messages
}

/// (design/exchange.md `.run.whole`)
#[test]
fn a_day_without_its_end_is_told() {
    let day = small_day();
    let told = |ran: Output| {
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        text(&ran.stdout).contains("does not end with the end of messages")
    };
    assert!(!told(run_input(&day, &[])));
    let last = day_of(&day).pop().unwrap().1.len();
    assert!(told(run_input(&day[..day.len() - last], &[])));
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_the_run() {
    for command in [&["run"][..], &["compare", "--live", "5e7"]] {
        let ran = exchange(&[command, &["--json", "no/such/folder/report"]].concat());
        assert_eq!(ran.status.code(), Some(1));
        assert!(ran.stdout.is_empty() && text(&ran.stderr).contains("no/such/folder/report: "));
    }
    // What is there stays if the run fails for another reason.
    let kept = file("kept-report", "as before");
    let ran = exchange(&["run", "--input", "no/such/input", "--json", &kept]);
    assert!(!ran.status.success());
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "as before");
}
