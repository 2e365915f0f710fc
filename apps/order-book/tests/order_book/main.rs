//! The order book, from outside: figures, exit status, messages, zeros.
mod feeds;
mod history;
mod injections;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod telemetry;
mod twins;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use feeds::{growing_feed, gzip, malformed_feed, small_feed, zstd};
use serde_json::Value;

/// The program, built as the tests are.
const PROGRAM: &str = env!("CARGO_BIN_EXE_order-book");

/// A file of this test run.
fn scratch_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs the program with `arguments` and a report to `name`.json.
fn run(name: &str, arguments: &[&str]) -> (Output, Value) {
    let json = scratch_file(&format!("{name}.json"));
    // A report of an earlier run would hide that this one wrote nothing.
    let _ = std::fs::remove_file(&json);
    let output = Command::new(PROGRAM).args(arguments).arg("--json").arg(&json).output().unwrap();
    let report = std::fs::read(&json).unwrap_or_else(|error| panic!("no report: {error}: {output:?}"));
    (output, serde_json::from_slice(&report).unwrap())
}

/// Runs the program on a file of these bytes.
fn run_on(name: &str, bytes: &[u8], arguments: &[&str]) -> (Output, Value) {
    let path = scratch_file(name);
    std::fs::write(&path, bytes).unwrap();
    run(name, &[&["--input", path.to_str().unwrap()], arguments].concat())
}

fn assert_succeeds(output: &Output) {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// Exit status 1, a summary, and one line on stderr with `cause` in it.
fn assert_fails(output: &Output, cause: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(cause), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("messages"), "{output:?}");
}

fn assert_steady_is_zero(report: &Value) {
    let zeros = ["arena_growth_bytes", "fills", "global_allocator_calls"];
    for key in zeros {
        assert_eq!(report["steady"][key], 0, "{key}: {report:#}");
    }
    if cfg!(target_os = "linux") {
        assert_eq!(report["steady"]["minor_page_faults"], 0, "{report:#}");
        assert_eq!(report["steady"]["major_page_faults"], 0, "{report:#}");
    }
    assert_eq!(report["contract"]["armed"], true, "{report:#}");
    assert_eq!(report["contract"]["violations"], Value::Array(vec![]), "{report:#}");
    assert_eq!(report["contract"]["alarms"], 0, "{report:#}");
    assert_eq!(report["contract"]["records_lost"], 0, "{report:#}");
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// design/order-book.md `.req.pools`, `.req.zero`.
#[test]
fn the_built_in_exchange_is_kept_at_no_cost_after_warm_up() {
    for market in ["futures", "spot"] {
        let arguments = ["--market", market, "--messages", "20000", "--warmup", "5000"];
        let (output, report) = run(market, &arguments);
        assert_succeeds(&output);
        assert_eq!(report["messages"], 20_000);
        assert_eq!(report["snapshots"], 2);
        assert_eq!(report["books"][0]["tickers"]["different"], 0);
        assert!(report["books"][0]["tickers"]["equal"].as_u64() > Some(1_000), "{report:#}");
        assert_eq!(report["warmup_messages"], 5_000);
        assert_eq!(report["steady_messages"], 15_000);
        assert_eq!(report["book_matches_reference"], true);
        assert!(report["level_updates"].as_u64() > Some(10_000));
        assert_steady_is_zero(&report);
    }
}

#[test]
fn the_report_has_exactly_these_keys() {
    let (output, report) = run("keys", &["--messages", "2000", "--warmup", "100"]);
    assert_succeeds(&output);
    let top = "messages depth_updates level_updates book_tickers trades snapshots skipped bid_levels ask_levels \
               best_bid best_ask crossed books peak_levels book_matches_reference warmup_messages steady_messages steady_seconds steady latency_ns \
               involuntary_switches pinned_to messages_per_second contract samples history";
    let steady = "arena_growth_bytes fills fill_bytes empty_bytes global_allocator_calls minor_page_faults \
                  major_page_faults";
    assert_eq!(keys(&report), top.split_whitespace().collect());
    assert_eq!(keys(&report["steady"]), steady.split_whitespace().collect());
    let contract = "live_detectors alarms violations records_lost amnesties routes warmup_rounds armed \
                    missing_memory_steps runtime";
    assert_eq!(keys(&report["contract"]), contract.split_whitespace().collect());
    assert_eq!(keys(&report["latency_ns"]), BTreeSet::from(["p50", "p99", "p999", "p9999", "max"]));
    assert!(report["latency_ns"]["p50"].as_u64() > Some(0));
    assert!(report["messages_per_second"].as_f64() > Some(0.0));
}

#[test]
fn a_small_feed_gives_the_figures_counted_by_hand() {
    let feed = small_feed(12);
    let forms = [("small", feed.clone()), ("small.gz", gzip(&feed)), ("small.zst", zstd(&feed))];
    for (name, bytes) in forms {
        let (output, report) = run_on(name, &bytes, &[]);
        assert_succeeds(&output);
        for (key, figure) in [
            ("messages", 12),
            ("depth_updates", 5),
            // Lines 5 and 9 with two entries each; 1, 7 and 11 are older than the snapshot or the book.
            ("level_updates", 4),
            ("book_tickers", 3),
            ("trades", 3),
            ("snapshots", 1),
            ("bid_levels", 3),
            ("ask_levels", 2),
            ("peak_levels", 5),
            ("warmup_messages", 12),
            ("steady_messages", 0),
        ] {
            assert_eq!(report[key], figure, "{key}: {report:#}");
        }
        assert_eq!((&report["best_bid"], &report["best_ask"]), (&"10.00".into(), &"11.00".into()));
        let book = &report["books"][0];
        assert_eq!((&book["symbol"], &book["known"]), (&"BTCUSDT".into(), &true.into()));
        assert_eq!((&book["updates_applied"], &book["updates_old"]), (&2.into(), &3.into()));
        assert_eq!((&book["tickers"]["equal"], &book["tickers"]["different"]), (&2.into(), &0.into()));
        assert_eq!(report["book_matches_reference"], true);
        // All of it is warm-up.
        assert_eq!(report["contract"]["armed"], false);
        assert_eq!(report["contract"]["warmup_rounds"], 0);
    }
}

#[test]
fn a_missing_file_fails() {
    let (output, report) = run("missing", &["--input", "no/such/feed.gz"]);
    assert_fails(&output, "no/such/feed.gz");
    assert_eq!(report["messages"], 0);
}

/// An empty input is a failure, and the summary shows no figures for what did
/// not happen (design/order-book.md `.report.nothing`).
#[test]
fn an_empty_input_fails_and_says_where_to_look() {
    for (name, bytes) in [("empty", vec![]), ("empty.gz", gzip(b"")), ("blank", b"\n\n".to_vec())] {
        let (output, report) = run_on(name, &bytes, &[]);
        assert_fails(&output, "line 1: ");
        assert_eq!(report["messages"], 0);
        let summary = String::from_utf8_lossy(&output.stdout);
        assert!(summary.contains("--help says what a record looks like"), "{summary}");
        assert!(!summary.contains("latency") && !summary.contains("throughput"), "{summary}");
    }
}

/// All of a short input is warm-up; the summary says so in place of zeros.
#[test]
fn a_steady_part_that_was_not_has_no_figures() {
    let (output, report) = run_on("short", &small_feed(12), &[]);
    assert_succeeds(&output);
    assert_eq!(report["steady_messages"], 0);
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(summary.contains("the input ended within the warm-up (see --warmup)"), "{summary}");
    assert!(!summary.contains("latency") && summary.contains("12 messages"), "{summary}");
}

/// The records that `--help` shows are records.
#[test]
fn the_help_shows_an_input() {
    let output = Command::new(PROGRAM).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let is_begin = |line: &str| line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" {");
    let mut feed = String::new();
    let shown =
        help.lines().map(str::trim).skip_while(|line| !is_begin(line)).take_while(|line| !line.is_empty());
    for line in shown {
        let end = if is_begin(line) && !feed.is_empty() { "\n" } else { "" };
        feed.push_str(end);
        feed.push_str(line);
    }
    let (output, report) = run_on("help", feed.as_bytes(), &[]);
    assert_succeeds(&output);
    let kinds = ["depth_updates", "book_tickers", "trades", "snapshots"];
    assert_eq!(kinds.map(|kind| report[kind].as_u64()), [Some(1); 4], "{feed}");
    assert_eq!(report["book_matches_reference"], true);
}

/// design/order-book.md `.req.lost`, `.input.end`.
#[test]
fn a_cut_off_file_fails_and_what_came_before_is_reported() {
    let whole = gzip(&small_feed(2_000));
    let (output, report) = run_on("cut.gz", &whole[..whole.len() * 2 / 3], &[]);
    let messages = report["messages"].as_u64().unwrap();
    assert_fails(&output, &format!("line {}: the gzip stream is cut off", messages + 1));
    assert!(messages > 100, "{messages}");
    assert_eq!(report["book_matches_reference"], true);
}

/// design/order-book.md `.inputs`.
#[cfg(unix)]
#[test]
fn a_named_pipe_is_an_input() {
    let path = scratch_file(&format!("pipe-{}", std::process::id()));
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero byte and lives.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    // Opening it waits for the program, or for this test's end.
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, zstd(&small_feed(12)))
    });
    let (output, report) = run("pipe", &["--input", path.to_str().unwrap()]);
    assert_succeeds(&output);
    writer.join().unwrap().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(report["messages"], 12);
}

const POLICIES: [&str; 3] = ["failfast", "quarantine", "alarmonce"];

/// A record that cannot be kept ends the run and loses nothing: everything before it is
/// reported, under every policy alike (design/order-book.md `.req.lost`,
/// `.failure.value`, `.handoff.lost`, `.book.whole`).
#[test]
fn a_line_that_cannot_be_kept_loses_nothing_by_any_policy() {
    let malformed = (malformed_feed(), "line 10: malformed record: not a decimal number");
    let memory =
        "line 10: no memory for the record: the book might have 45 levels, and there is memory for 12";
    for (name, (feed, cause)) in [("malformed", malformed), ("memory", (growing_feed(), memory))] {
        for policy in POLICIES {
            let arguments = ["--warmup", "2", "--levels", "12", "--policy", policy];
            let (output, report) = run_on(&format!("{name}-{policy}"), &feed, &arguments);
            assert_fails(&output, cause);
            assert_eq!((&report["messages"], &report["steady_messages"]), (&9.into(), &7.into()));
            assert_eq!((&report["bid_levels"], &report["ask_levels"]), (&3.into(), &2.into()));
            assert_eq!(report["book_matches_reference"], true);
            assert_steady_is_zero(&report);
        }
    }
}

/// The same if no file for the report can be written: both failures are named.
#[test]
fn two_failures_are_two_lines_by_any_policy() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let input = scratch_file("malformed-twice");
    std::fs::write(&input, malformed_feed()).unwrap();
    for policy in POLICIES {
        let arguments = ["--warmup", "2", "--policy", policy, "--json", directory, "--input"];
        let output = Command::new(PROGRAM).args(arguments).arg(&input).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let [first, second] = stderr.lines().collect::<Vec<_>>()[..] else { panic!("{stderr}") };
        assert!(first.contains("line 10: malformed record"), "{stderr}");
        assert!(second.contains(directory), "{stderr}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("9 (4 depth updates"), "{output:?}");
    }
}

/// design/order-book.md `.req.lost`, `.book.whole`.
#[test]
fn a_book_that_is_full_is_a_message_and_no_panic() {
    let (output, report) = run("full", &["--messages", "20000", "--warmup", "1", "--levels", "1"]);
    let messages = report["messages"].as_u64().unwrap();
    assert_fails(&output, &format!("line {}: no memory for the record", messages + 1));
    assert!(messages < 20_000);
    assert_eq!(report["book_matches_reference"], true);
    assert_eq!(report["contract"]["alarms"], 0);
}

/// Unused fields may contain anything (design/order-book.md `.wire.scan`).
#[test]
fn skipped_fields_need_not_fit() {
    let mut feed = small_feed(8);
    let field = format!(r#""x":1e400,"y":[{},{{"z":-0.1E-999}}],"#, "9".repeat(400));
    let record = format!(
        r#"9 {{{field}"stream":"btcusdt@depth","data":{{{field}"e":"depthUpdate","U":6,"u":9,"b":[["1","1"]],"a":[]}}}}"#
    );
    feed.extend_from_slice(record.as_bytes());
    let (output, report) = run_on("unfit", &feed, &[]);
    assert_succeeds(&output);
    assert_eq!((&report["messages"], &report["depth_updates"]), (&9.into(), &4.into()));
    assert_eq!(report["book_matches_reference"], true);
}

/// design/order-book.md `.wire.other`.
#[test]
fn other_streams_are_skipped_and_counted_by_their_name() {
    let mut feed = small_feed(8);
    for record in [
        r#"{"stream":"x@aggTrade","data":{"e":"aggTrade","a":1,"p":"1","q":"1","m":true}}"#,
        r#"{"result":null,"id":1}"#,
        r#"{"stream":"x@aggTrade","data":{"e":"aggTrade","a":2,"p":"1","q":"1","m":true}}"#,
    ] {
        feed.extend_from_slice(format!("9 {record}\n").as_bytes());
    }
    let (output, report) = run_on("others", &feed, &["--warmup", "2"]);
    assert_succeeds(&output);
    assert_eq!(report["skipped"], serde_json::json!({ "(no stream)": 1, "x@aggTrade": 2 }));
    assert_eq!(report["messages"], 11);
    assert_steady_is_zero(&report);
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 of x@aggTrade"), "{output:?}");
}

#[test]
fn a_report_that_cannot_be_written_fails_by_any_policy() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    for policy in POLICIES {
        let arguments = ["--messages", "3000", "--warmup", "100", "--policy", policy, "--json", directory];
        let output = Command::new(PROGRAM).args(arguments).output().unwrap();
        assert_fails(&output, directory);
    }
}

/// design/order-book.md `.req.real`, `.req.right`, `.req.zero`.
#[test]
fn the_recorded_feed_gives_the_figures_of_an_independent_script() {
    let Some(recorded) = feeds::recorded("usdm") else { return };
    let (output, report) = run("recorded", &["--input", recorded.to_str().unwrap()]);
    assert_succeeds(&output);
    for (key, figure) in [
        ("messages", 93_954),
        ("depth_updates", 6_551),
        ("level_updates", 443_262),
        ("book_tickers", 66_089),
        ("trades", 21_313),
        ("snapshots", 1),
        ("bid_levels", 5_018),
        ("ask_levels", 4_578),
        ("peak_levels", 9_739),
    ] {
        assert_eq!(report[key], figure, "{key}");
    }
    assert_eq!((&report["best_bid"], &report["best_ask"]), (&"61659.70".into(), &"61659.80".into()));
    assert_book(&report, (6_547, 4));
    assert_eq!(report["book_matches_reference"], true);
    assert!(report["steady_messages"].as_u64() > Some(80_000));
    assert_steady_is_zero(&report);
}

/// The same of the spot market.
#[test]
fn the_recorded_spot_feed_gives_the_figures_of_an_independent_script() {
    let Some(recorded) = feeds::recorded("spot") else { return };
    let (output, report) = run("recorded-spot", &["--input", recorded.to_str().unwrap()]);
    assert_succeeds(&output);
    for (key, figure) in [
        ("messages", 41_249),
        ("depth_updates", 3_451),
        ("level_updates", 124_073),
        ("bid_levels", 1_209),
        ("ask_levels", 2_196),
        ("peak_levels", 3_667),
    ] {
        assert_eq!(report[key], figure, "{key}");
    }
    assert_eq!((&report["best_bid"], &report["best_ask"]), (&"61685.99".into(), &"61686.00".into()));
    assert_book(&report, (3_449, 2));
    assert_steady_is_zero(&report);
}

/// The only book followed its updates without a gap, and has after each of them the best prices that the exchange
/// says. `counts` are the updates that were applied, and the older ones.
fn assert_book(report: &Value, counts: (u64, u64)) {
    let [book] = &report["books"].as_array().unwrap()[..] else { panic!("{report:#}") };
    let figure = |key: &str| book[key].as_u64().unwrap();
    assert_eq!((figure("updates_applied"), figure("updates_old")), counts, "{book:#}");
    assert_eq!((figure("gaps"), figure("updates_crossed"), figure("updates_lost")), (0, 0, 0), "{book:#}");
    assert_eq!(book["tickers"]["equal"], counts.0, "{book:#}");
    assert_eq!((&book["tickers"]["different"], &book["tickers"]["not_compared"]), (&0.into(), &0.into()));
    assert_eq!(report["book_matches_reference"], true);
}

/// The integration gate's profiles (design/gates.md `.integration`, `.req.counts`).
#[test]
fn no_profile_violates_the_contract() {
    for profile in ["quiet", "normal", "stressed"] {
        let arguments =
            ["--profile", profile, "--messages", "6000", "--warmup", "1000", "--policy", "failfast"];
        let (output, report) = run(profile, &arguments);
        assert_succeeds(&output);
        assert_steady_is_zero(&report);
        assert_eq!(report["book_matches_reference"], true);
        assert_eq!(report["snapshots"].as_u64() > Some(2), profile == "stressed");
        assert_eq!(report["books"][0]["gaps"].as_u64() > Some(0), profile == "stressed", "{report:#}");
    }
}

/// design/order-book.md `.seconds`: no earlier by the book's clock, which is no faster than that of the test.
#[test]
fn the_steady_part_lasts_as_long_as_asked_for() {
    let arguments = ["--seconds", "1", "--messages", "1000", "--warmup", "500"];
    let paced = ["--profile", "live", "--as-recorded", "--seed", "7"];
    for (name, more) in [("seconds", &[][..]), ("live", &paced)] {
        let begin = std::time::Instant::now();
        let (output, report) = run(name, &[&arguments[..], more].concat());
        let took = begin.elapsed().as_secs_f64();
        assert_succeeds(&output);
        let seconds = report["steady_seconds"].as_f64().unwrap();
        assert!(1.0 <= seconds && seconds <= took, "{name}: {seconds} of {took} s");
        assert_steady_is_zero(&report);
        assert_eq!(report["book_matches_reference"], true, "{name}");
        let summary = String::from_utf8_lossy(&output.stdout);
        assert_eq!(summary.contains("Live, seed 7\n"), name == "live", "{summary}");
    }
}

#[test]
fn the_warm_up_takes_every_route_as_often_as_asked() {
    let (output, report) = run("passes", &["--messages", "3000", "--warmup", "0", "--passes", "100"]);
    assert_succeeds(&output);
    let routes = report["contract"]["routes"].as_array().unwrap();
    let minimum = |route: &Value| route["minimum"].as_u64().unwrap();
    assert_eq!(routes.iter().map(minimum).collect::<Vec<_>>(), [100, 100, 100, 4, 2]);
    assert!(routes.iter().all(|route| route["passes"].as_u64() >= Some(minimum(route))));
    assert!(report["contract"]["warmup_rounds"].as_u64() >= Some(1));
}

/// design/order-book.md `.bounds`: in place of a run without end or a word.
#[test]
fn figures_beyond_all_bounds_are_refused() {
    for (option, figure, limit) in [
        ("--levels", "100000000000", "at most 10000000 levels"),
        ("--passes", "18446744073709551615", "..=1000000"),
    ] {
        let output = Command::new(PROGRAM).args([option, figure]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(limit), "{output:?}");
    }
}
