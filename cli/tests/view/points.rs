//! Logs of points are replayed with the same outcome of every call, and logs that were changed are not
//! (design/point-log.md).

use std::io::Write as _;

use tempfile::NamedTempFile;

use self::programs::{Length, Logged};
use crate::run::{Ran, run};

mod changed;
mod crafted;
mod packets;
mod programs;

/// A log in a file.
fn file(log: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(log).unwrap();
    file
}

fn replay(arguments: &[&str], log: &[u8]) -> Ran {
    run(&[&["replay"], arguments].concat(), file(log).path())
}

fn assert_same(Logged { log, events, .. }: &Logged) {
    let ran = replay(&["--json"], log);
    assert_eq!(ran.status, Some(0), "{}{}", ran.out, ran.err);
    let (json, events) = (ran.json(), *events);
    assert!(json["divergence"].is_null(), "{json}");
    let counted = ["replayed", "passed_over"].map(|count| json[count].as_u64().unwrap());
    assert_eq!((json["events"].as_u64(), counted.iter().sum()), (Some(events), events));
    // All events of a call belong to it, so there are fewer calls.
    let calls = json["calls"].as_u64().unwrap();
    assert!(calls > events / 10 && calls < events, "{calls} calls in {events} events");
}

/// (design/point-log.md `.req.same`)
#[test]
fn an_order_book_is_replayed() {
    let logged = programs::order_book(1, Length::SHORT);
    assert_same(&logged);
    assert!(logged.kinds_include(&[
        "free at point",
        "push frame",
        "pop frame",
        "alloc",
        "free",
        "commit",
        "abandon"
    ]));
}

/// (design/point-log.md `.req.same`)
#[test]
fn an_arena_of_the_systems_memory_is_replayed() {
    let logged = programs::order_book_of_the_system(8, Length::SHORT);
    assert_same(&logged);
    assert!(logged.kinds_include(&["create arena", "grow", "extend", "destroy arena"]));
}

/// (design/point-log.md `.req.same`)
#[test]
fn frames_that_begin_at_one_place_are_told_apart() {
    assert_same(&programs::frames_without_memory());
}

/// (design/point-log.md `.req.same`)
#[test]
fn random_runs_of_each_class_are_replayed() {
    for class in programs::CLASSES {
        let logged = programs::random_run(class, 2, Length::SHORT);
        assert_same(&logged);
        assert!(logged.kinds_include(&[
            "reserve",
            "commit",
            "abandon",
            "fill",
            "empty",
            "empty point",
            "trip"
        ]));
    }
    let full = programs::random_run("MVFF", 3, Length::SHORT);
    assert!(full.kinds_include(&["refuse reserve", "refuse alloc", "resize"]), "{:?}", full.kinds());
}

/// (design/point-log.md `.req.order`)
#[test]
fn threads_are_replayed_in_the_order_of_the_log() {
    let logged = programs::threads(4, Length::SHORT);
    assert_same(&logged);
    let json = replay(&["--json"], &logged.log).json();
    assert_eq!(json["threads"], 5, "four, and the one that makes the pools");
}

/// Fills of a heap are between two calls, so that calls of other threads come in between
/// (design/point-log.md `.order.stops`, `.heaps`).
#[test]
fn mutators_of_a_heap_are_replayed() {
    let logged = programs::mutators(2_000);
    assert_same(&logged);
    assert_eq!(replay(&["--json"], &logged.log).json()["threads"], 3, "two, and the one that makes the pool");
    let text = replay(&["--until", "100"], &logged.log).out;
    assert!(text.contains(" AMS\n") && text.contains("of the arena and its heap"), "{text}");
    let other = replay(&["--on", "mvff"], &logged.log);
    assert!(
        other.status == Some(0) && other.out.contains("nothing was replayed"),
        "{}{}",
        other.out,
        other.err
    );
}

/// What each flip saw is compared, and what is known of mutators, roots, frozen segments, stops and collections is checked
/// (design/point-log.md `.heaps`).
#[test]
fn a_log_of_a_heap_that_collects_is_replayed_as_far_as_it_can_be() {
    const STEPS: usize = 400;
    let logged = programs::collected(STEPS);
    assert!(logged.kinds_include(&[
        "register mutator",
        "drop mutator",
        "register root",
        "drop root",
        "register frozen",
        "update frozen",
        "drop frozen",
        "drop heap",
        "flip",
        "commit failed",
        "begin collection",
        "begin step",
        "end step",
    ]));
    assert_same(&logged);
    let heaps = replay(&["--json"], &logged.log).json()["heaps"].clone();
    let count = |name: &str| heaps[name].as_u64().unwrap();
    let each = 2 * STEPS as u64 / 50;
    assert_eq!(["mutators", "roots", "frozen_segments", "collections"].map(count), [2, 1, 1, each]);
    assert!(count("steps") >= each, "{heaps}");
    assert!(count("flips") >= each && count("failed_commits") >= each, "{heaps}");
    let text = replay(&[], &logged.log).out;
    for expected in [
        format!("heap, compared with the replay: the objects that each of {} flips saw,", count("flips")),
        "2 mutators, 1 root, 1 frozen segment,".into(),
        format!(
            "heap, taken from the log: fills, refusals, when points give way, and {} commits",
            count("failed_commits")
        ),
        "heap, not compared: when it collects, which objects it keeps, and where it moves them".into(),
    ] {
        assert!(text.contains(&expected), "{expected}: {text}");
    }
}

/// A command that does not read a log names the one that does.
#[test]
fn a_report_of_a_log_says_what_replays_it() {
    let log = file(&programs::frames_without_memory().log);
    let refused = run(&["report"], log.path());
    assert_eq!(refused.status, Some(2), "{}", refused.out);
    assert!(refused.err.contains("is a log of points; `tripoint replay` replays it"), "{}", refused.err);
}

/// The state up to an event has the points that are there then (design/point-log.md `.state`).
#[test]
fn a_replay_ends_where_it_is_asked_to_and_shows_what_is_there() {
    let Logged { log, events, .. } = programs::order_book(5, Length::SHORT);
    let ran = replay(&["--until", &(events / 2).to_string(), "--json"], &log);
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    let json = ran.json();
    let replayed = json["replayed"].as_u64().unwrap();
    assert!(replayed.abs_diff(events / 2) < 20, "{replayed} of {events}");
    let pools = json["state"]["pools"].as_array().unwrap();
    assert_eq!(
        pools.iter().map(|pool| pool["class"].as_str().unwrap()).collect::<Vec<_>>(),
        ["MFS", "MVFF", "SNC"]
    );
    for point in pools.iter().flat_map(|pool| pool["points"].as_array().unwrap()) {
        let word = |name: &str| point["words"][name].as_u64().unwrap_or(0);
        assert!(
            word("base") <= word("init") && word("init") <= word("alloc") && word("alloc") <= word("limit")
        );
    }
    let text = replay(&["--until", "100"], &log);
    assert!(
        text.out.contains("calls of 1 thread\n")
            && text.out.contains("every call has the same outcome")
            && text.out.contains("pool 2 MFS: "),
        "{}",
        text.out
    );
}

/// (design/point-log.md `.other`)
#[test]
fn another_class_does_the_same_calls_and_what_differs_is_counted() {
    let Logged { log, events, .. } = programs::order_book(6, Length::SHORT);
    let ran = replay(&["--on", "tlsf", "--json"], &log);
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    let json = ran.json();
    assert_eq!(json["replayed"], events);
    let [logged, replayed] = [0, 1].map(|run| json["kinds"]["commit"][run].as_u64().unwrap());
    assert!(logged > 0 && logged == replayed, "as many objects are committed in any class");
    assert_eq!(
        json["otherwise"],
        serde_json::json!({ "pools": 2, "refused": 0, "served": 0, "left_out": 0 })
    );
}

/// The program fills its arena, so another class refuses what this one serves, and what it refused is not freed
/// (design/point-log.md `.other`).
#[test]
fn what_another_class_refuses_is_left_out_later() {
    let Logged { log, events, .. } = programs::random_run("MVFF", 3, Length::SHORT);
    let mut found = [0; 3];
    for other in ["mvff", "tlsf", "mvt"] {
        let ran = replay(&["--on", other, "--json"], &log);
        assert_eq!(ran.status, Some(0), "{other}: {}", ran.err);
        let json = ran.json();
        assert_eq!(json["replayed"], events);
        for (sum, name) in found.iter_mut().zip(["refused", "served", "left_out"]) {
            *sum += json["otherwise"][name].as_u64().unwrap();
        }
    }
    assert!(found.iter().all(|&sum| sum > 0), "{found:?}");
}

/// A program that ended in the middle has written no end (design/point-log.md `.state`).
#[test]
fn a_log_without_an_end_is_replayed_up_to_an_event_that_it_has() {
    for Logged { log, events, .. } in
        [programs::order_book(7, Length::SHORT), programs::threads(7, Length::SHORT)]
    {
        let state = |log: &[u8], until: u64| {
            let ran = replay(&["--json", "--until", &until.to_string()], log);
            assert_eq!(ran.status, Some(0), "{until}: {}{}", ran.out, ran.err);
            let json = ran.json();
            assert!(json["divergence"].is_null(), "{until}: {json}");
            (json["state"].clone(), json["is_cut"].as_bool().unwrap())
        };
        for part in 1..8 {
            let cut = &log[..log.len() * part / 8];
            let refused = replay(&[], cut);
            assert_eq!(refused.status, Some(2));
            let (_, until) = refused.err.trim_end().rsplit_once("--until ").unwrap();
            let until: u64 = until.parse().unwrap();
            assert!(until < events);
            // Its last call may not be whole.
            assert!(state(cut, until).1);
            assert_eq!(state(cut, until / 2), (state(&log, until / 2).0, true));
            assert_eq!(replay(&["--until", &(until + 1).to_string()], cut).status, Some(2));
        }
    }
}

/// (design/point-log.md `.req.whole`)
#[test]
fn a_log_that_is_not_whole_is_refused() {
    let Logged { log, .. } = programs::order_book(7, Length::SHORT);
    let cut = replay(&[], &log[..log.len() - 40]);
    assert!(cut.status == Some(2) && cut.err.contains("no end"), "{}", cut.err);
    let ran = replay(&[], &programs::without_the_arena().log);
    assert!(ran.status == Some(2) && ran.err.contains("does not begin with its arena"), "{}", ran.err);
    let ran = replay(&[], &programs::with_an_unlogged_point().log);
    assert!(
        ran.status == Some(1) && ran.out.contains("the replay diverges at event"),
        "{}{}",
        ran.out,
        ran.err
    );
}

/// A million events and more, of all programs: `cargo test -p tripoint-cli --test view long_logs -- --ignored --nocapture`.
#[test]
#[ignore = "it takes minutes"]
fn long_logs_are_replayed() {
    let mut events = 0;
    let mut assert_one = |logged: Logged| {
        assert_same(&logged);
        events += logged.events;
    };
    assert_one(programs::order_book(11, Length::LONG));
    programs::CLASSES.into_iter().for_each(|class| assert_one(programs::random_run(class, 12, Length::LONG)));
    assert_one(programs::threads(13, Length::LONG));
    assert_one(packets::random_calls(14, Length::LONG));
    println!("{events} events, each replayed with the same outcome");
    assert!(events >= 1_000_000, "{events} events");
}
