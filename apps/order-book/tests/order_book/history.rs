//! The history of trades: kept, collected in quiet moments, and in no other.

use serde_json::Value;

use crate::feeds::trades_feed;
use crate::injections::{is_live, names_line_of};
use crate::{assert_steady_is_zero, assert_succeeds, keys, run, run_on};

/// The bytes of a trade in the history on 64-bit machines: its header, itself, and three links.
const TRADE: usize = 8 + 24 + 3 * 8;

/// The bytes of the rest: the ends of the list, and an index with this many buckets.
const fn rest(buckets: usize) -> usize {
    (8 + 4 * 8) + (8 + 8 + 8 * buckets)
}

/// What holds of every run with a history: whatever it did was in quiet moments, and the arena did not grow.
fn assert_steady_but_in_quiet_moments(report: &Value) {
    let (steady, contract) = (&report["steady"], &report["contract"]);
    assert_eq!((&steady["arena_growth_bytes"], &steady["global_allocator_calls"]), (&0.into(), &0.into()));
    assert_eq!(contract["armed"], true, "{report:#}");
    assert_eq!((&contract["alarms"], &contract["records_lost"]), (&0.into(), &0.into()), "{report:#}");
    assert_eq!(contract["violations"], Value::Array(vec![]), "{report:#}");
    assert_eq!(contract["amnesties"]["over_budget"], 0, "{report:#}");
    assert_eq!(report["history"]["violations"], 0, "{report:#}");
}

/// design/order-book.md `.req.history`, `.history.quiet`.
#[test]
fn the_last_trades_are_kept_and_collected_in_quiet_moments() {
    let (output, report) = run_on("trades", &trades_feed(60_000), &["--warmup", "1000", "--history", "5000"]);
    assert_succeeds(&output);
    assert_eq!((&report["trades"], &report["steady_messages"]), (&60_000.into(), &59_002.into()));
    assert_steady_but_in_quiet_moments(&report);
    let history = &report["history"];
    assert_eq!((&history["trades"], &history["not_kept"]), (&5_000.into(), &0.into()));
    assert_eq!(history["matches_reference"], true);
    // 5,000 squares modulo 97 are 51 times and a half all of them: each but zero comes twice in 97.
    assert!(history["most_traded"]["trades"].as_u64() >= Some(103), "{report:#}");
    if cfg!(target_pointer_width = "64") {
        assert_eq!(history["bytes"], 5_000 * TRADE + rest(8192));
    }
    let entered = &report["contract"]["amnesties"]["reasons"]["history"];
    assert!(entered.as_u64() >= Some(2), "{report:#}");
    assert!(entered.as_u64() <= history["quiet_moments"].as_u64(), "{report:#}");
    assert!(history["collections"].as_u64() >= Some(1), "{report:#}");
    assert!(history["longest_pause_ns"].as_u64() > Some(0), "{report:#}");
    let summary = String::from_utf8_lossy(&output.stdout);
    for text in
        ["the last 5000 trades, of at most 5000", "hot collections       0", "reference history     the same"]
    {
        assert!(summary.contains(text), "{summary}");
    }
}

/// A feed that has few trades needs no fill: the history is then as cheap as the rest.
#[test]
fn a_history_of_the_built_in_exchange_costs_nothing_in_hot_moments() {
    let arguments = ["--messages", "20000", "--warmup", "5000", "--history", "1000"];
    let (output, report) = run("history-exchange", &arguments);
    assert_succeeds(&output);
    assert_steady_is_zero(&report);
    assert_steady_but_in_quiet_moments(&report);
    let history = &report["history"];
    assert_eq!((&history["trades"], &history["matches_reference"]), (&1_000.into(), &true.into()));
}

/// The whole feed is warm-up, and there are fewer trades than the history may have.
#[test]
fn a_short_feed_is_kept_whole() {
    let (output, report) = run_on("few-trades", &trades_feed(500), &["--history", "1000"]);
    assert_succeeds(&output);
    let history = &report["history"];
    assert_eq!((&history["trades"], &history["matches_reference"]), (&500.into(), &true.into()));
    let names = "capacity trades most_traded matches_reference not_kept bytes pool_bytes quiet_moments collections \
                 longest_pause_ns violations";
    assert_eq!(keys(history), names.split_whitespace().collect());
    assert_eq!(keys(&history["most_traded"]), ["price", "quantity", "trades"].into());
    assert_eq!(report["contract"]["armed"], false);
    // Without the option there is nothing.
    let (output, report) = run_on("no-history", &trades_feed(500), &[]);
    assert_succeeds(&output);
    assert_eq!(report["history"], Value::Null);
}

/// When the budget is used up, the contract is kept and trades are not.
#[test]
fn no_quiet_moment_is_beyond_the_budget() {
    let arguments = ["--warmup", "1000", "--history", "1000", "--quiet-moments", "1"];
    let (output, report) = run_on("trades-budget", &trades_feed(60_000), &arguments);
    assert_succeeds(&output);
    assert_steady_but_in_quiet_moments(&report);
    assert_eq!(report["contract"]["amnesties"]["entered"], 1);
    assert_eq!(report["steady"]["fills"], 0);
    let history = &report["history"];
    assert!(history["not_kept"].as_u64() > Some(0), "{report:#}");
    assert_eq!((&history["trades"], &history["matches_reference"]), (&1_000.into(), &Value::Null));
    assert!(String::from_utf8_lossy(&output.stdout).contains("(see --quiet-moments)"));
}

/// The negative control: a collection in a hot moment is a violation of its own class, with its line.
#[test]
fn a_collection_in_a_hot_moment_is_a_violation() {
    let feed = trades_feed(3_000);
    let arguments =
        |policy| ["--warmup", "1000", "--history", "500", "--inject", "collection", "--policy", policy];
    let (output, report) = run_on("hot-collection", &feed, &arguments("quarantine"));
    assert_succeeds(&output);
    let history = &report["history"];
    assert_eq!((&report["messages"], &history["matches_reference"]), (&3_002.into(), &true.into()));
    if !is_live(&report, "pool_events") {
        return;
    }
    assert_eq!(history["violations"], 1, "{report:#}");
    let alarms = report["contract"]["violations"].as_array().unwrap();
    assert_eq!(alarms.len(), 1, "{report:#}");
    assert_eq!((&alarms[0]["class"], &alarms[0]["count"]), (&"collection".into(), &1.into()));
    assert!(names_line_of(alarms[0]["site"].as_str().unwrap(), "inject_collection"), "{report:#}");

    let (output, report) = run_on("hot-collection", &feed, &arguments("failfast"));
    assert_eq!((output.status.code(), &report["messages"]), (Some(3), &1_100.into()), "{output:?}");
    assert_eq!(report["history"]["matches_reference"], true);
    assert!(String::from_utf8_lossy(&output.stderr).contains("failed fast: collection x1"), "{output:?}");
}

#[test]
fn a_collection_of_no_history_is_refused() {
    let mut command = std::process::Command::new(crate::PROGRAM);
    let output = command.args(["--inject", "collection"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("use --history"), "{output:?}");
}

/// The events of a collection are recorded, too.
#[cfg(target_os = "linux")]
#[test]
fn a_history_is_recorded_as_the_rest_of_the_run() {
    let file = crate::scratch_file("history.telemetry");
    let arguments = ["--warmup", "1000", "--history", "500", "--telemetry", file.to_str().unwrap()];
    let (output, report) = run_on("history-recorded", &trades_feed(5_000), &arguments);
    assert_succeeds(&output);
    let reader = tripoint_telemetry::reader::Reader::open(&file).unwrap();
    let collections: u64 =
        reader.counters().unwrap().arenas.entries.iter().map(|arena| arena.collections).sum();
    // There were some while the history was prepared.
    assert!(collections > report["history"]["collections"].as_u64().unwrap(), "{report:#}");
    assert_eq!(report["history"]["matches_reference"], true);
}
