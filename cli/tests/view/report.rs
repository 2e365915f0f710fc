//! `tripoint report` (design/cli.md `.report`).

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use tripoint_core::{Event, EventHook};
use tripoint_stack::Site;
use tripoint_telemetry::format::{HeaderWord, RingWord, SECTION_WORDS, SectionKind, SectionWord};

use crate::recorded::{Hot, Recorded, sample_at};
use crate::run::run;

fn functions(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["site"]["function"].as_str().unwrap()).collect()
}

#[test]
fn a_report_has_names_lines_and_the_events_of_the_steady_state() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let report = run(&["report", "--json"], &recorded.path());
    assert_eq!(report.status, Some(1), "violations were found: {}", report.err);
    assert_eq!(run(&["report"], &Recorded::of_a_run(Hot::Keeps).path()).status, Some(0));
    let report = report.json();
    assert_eq!(report["part"], "steady_state");
    assert_eq!(report["process"], std::process::id());
    assert_eq!(report["phases"].as_array().unwrap().len(), 3);
    assert_eq!(report["events"]["sample"], 3, "those of the warm-up are left out");
    assert_eq!(report["events"]["fill"], 1);
    assert!(report["events"].get("empty").is_none(), "the teardown is left out");

    assert_eq!(report["pools"][0]["class"], "MVFF");
    assert_eq!(report["pools"][0]["extended"], 8192);
    assert_eq!(report["arenas"][0]["grown"], 8192);
    assert_eq!(report["points"][0]["fills"], 2);
    assert_eq!(report["points"][0]["fills_in_part"], 1);

    let violation = &report["violations"][1];
    assert_eq!((&violation["name"], &violation["class"]), (&"hot".into(), &"alloc".into()));
    assert_eq!((&violation["kind"], &violation["count"]), (&"violation".into(), &1.into()));
    let site = &violation["site"];
    assert!(site["function"].as_str().unwrap().ends_with("recorded::violates"), "{site}");
    assert!(site["line"].as_str().unwrap().contains("tests/view/recorded.rs:"), "{site}");

    let tally = &report["tallies"][0];
    assert_eq!((&tally["name"], &tally["class"]), (&"hot".into(), &"alloc".into()));
    assert_eq!((&tally["count"], &tally["armed_count"]), (&5.into(), &1.into()));

    let sites = functions(&report["sites"]);
    assert!(sites.len() == 1 && sites[0].ends_with("allocates_while_steady"), "{sites:?}");
    let site = &report["sites"][0];
    assert_eq!((&site["type_name"], &site["samples"]), (&"Order".into(), &3.into()));
    assert!(site["at_least"].as_u64() < site["bytes"].as_f64().map(|bytes| bytes as u64), "{site}");
    assert_eq!(report["faults"], Value::Array(Vec::new()));
}

/// Several stacks at one site, of which the report shows one.
#[test]
fn a_report_of_one_file_is_the_same_each_time() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let hook = recorded.telemetry.arena_hook();
    let here = Site::here();
    for outermost in 1..=20 {
        sample_at(&hook, &[here.frames(), &[outermost]].concat());
    }
    let reports = [0; 5].map(|_| run(&["report", "--json", "--all"], &recorded.path()).out);
    assert!(reports[0].contains("\"stack\""));
    assert!(reports.iter().all(|report| *report == reports[0]));
}

#[test]
fn all_events_are_counted_if_asked_for() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let report = run(&["report", "--json", "--all"], &recorded.path()).json();
    assert_eq!((&report["part"], &report["events"]["sample"]), (&"all".into(), &6.into()));
    assert_eq!(report["sites"].as_array().unwrap().len(), 2);
}

#[test]
fn hot_threads_are_those_that_the_contract_named() {
    let samples = |hot| {
        let report = run(&["report", "--json", "--hot"], &Recorded::of_a_run(hot).path()).json();
        (report["sites"].as_array().unwrap().len(), report["threads"].as_array().unwrap().len())
    };
    assert_eq!(samples(Hot::Violates).0, 1);
    assert_eq!(samples(Hot::Keeps), (0, 0), "no event says which thread is hot");
}

#[test]
fn without_a_contract_all_events_count() {
    let recorded = Recorded::empty();
    recorded.telemetry.arena_hook().event(Event::Grow { size: 4096 });
    let report = run(&["report", "--json"], &recorded.path()).json();
    assert_eq!((&report["part"], &report["events"]["grow"]), (&"all".into(), &1.into()));
    let text = run(&["report"], &recorded.path());
    assert!(text.out.contains("no contract") && text.out.contains("grow"), "{}", text.out);
}

#[test]
fn the_text_has_every_table_and_no_colours() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let text = run(&["report"], &recorded.path()).out;
    for title in [
        "phases",
        "tallies of the contract",
        "violations",
        "arenas",
        "pools",
        "points",
        "from all samples",
        "samples that were read",
        "events",
        "threads",
    ] {
        assert!(text.lines().any(|line| line.contains(title)), "{title}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
}

/// (design/cli.md `.req.readable`)
#[test]
fn a_file_that_is_cut_off_is_reported_as_far_as_it_goes() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let bytes = recorded.bytes();
    let whole = run(&["report", "--json", "--all"], &recorded.path()).json();
    let mut readable = 0;
    for share in 0..8 {
        let cut = recorded.beside("cut", &bytes[..bytes.len() * share / 8]);
        let report = run(&["report", "--json", "--all"], &cut);
        assert_eq!(report.status, Some(2), "{share} eighths");
        assert!(!report.err.is_empty());
        if !report.out.is_empty() {
            readable += 1;
            let report = report.json();
            assert_eq!(report["arenas"], whole["arenas"], "{share} eighths");
            assert!(!report["faults"].as_array().unwrap().is_empty());
        }
    }
    assert!(readable >= 5, "{readable}");
}

#[test]
fn what_cannot_be_read_at_all_is_named() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let with = |word: HeaderWord, value: u64| {
        let mut bytes = recorded.bytes();
        let at = word as usize * size_of::<u64>();
        bytes[at..at + size_of::<u64>()].copy_from_slice(&value.to_ne_bytes());
        recorded.beside(&format!("{word:?}{value}"), &bytes)
    };
    let order = u64::from_ne_bytes(recorded.bytes()[16..24].try_into().unwrap());
    let refused = [
        (with(HeaderWord::Version, 99), "format 99"),
        (with(HeaderWord::ByteOrder, order.swap_bytes()), "other byte order"),
        (with(HeaderWord::ByteOrder, 7), "damaged"),
        (recorded.beside("text", b"no telemetry"), "has no telemetry"),
        (recorded.path().with_extension("switches"), "switches of process"),
        (recorded.folder().to_owned(), "not a regular file; pass"),
        (recorded.beside("trace", b"TRIPTRC\n"), "tripoint replay"),
        (recorded.folder().join("none"), "No such file"),
        ("4294967295".into(), "has ended"),
    ];
    for (path, expected) in refused {
        let report = run(&["report"], &path);
        assert_eq!((report.status, report.out.as_str()), (Some(2), ""), "{}", path.display());
        assert!(report.err.contains(expected), "{}: {}", path.display(), report.err);
    }
}

/// As of a program that was killed when it had numbered an event and not shown it (design/telemetry.md `.reader.dead`).
#[test]
fn an_event_that_is_not_complete_is_left_out_and_is_no_fault() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let mut words: Vec<u64> =
        recorded.bytes().as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let mut changed = 0;
    for section in 0..words[HeaderWord::Sections as usize] as usize {
        let word = |word: SectionWord| {
            words[HeaderWord::SectionTable as usize + section * SECTION_WORDS + word as usize]
        };
        let [offset, bytes] = [SectionWord::Offset, SectionWord::EntryBytes].map(|it| word(it) as usize / 8);
        let kinds = [SectionKind::Rings, SectionKind::LastingRings].map(|kind| kind as u64);
        let rings =
            if kinds.contains(&word(SectionWord::Kind)) { word(SectionWord::Entries) as usize } else { 0 };
        for ring in 0..rings {
            let head = &mut words[offset + ring * bytes..];
            if head[RingWord::Serial as usize] > 0 {
                head[RingWord::Serial as usize] += 1;
                head[RingWord::Intent as usize] = head[RingWord::Tail as usize] + 8;
                changed += 1;
            }
        }
    }
    assert!(changed > 1, "a ring of each kind");
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let [whole, killed] = [recorded.path(), recorded.beside("killed", &bytes)].map(|path| {
        let report = run(&["report", "--json"], &path);
        assert_eq!((report.status, report.err.as_str()), (Some(0), ""));
        report.json()
    });
    assert_eq!((&killed["events"], &killed["losses"]), (&whole["events"], &whole["losses"]));
}

#[test]
fn a_recording_is_read_while_it_is_written() {
    let recorded = Recorded::empty();
    let path = recorded.path();
    let (is_begun, is_read) = (AtomicBool::new(false), AtomicBool::new(false));
    let hook = recorded.telemetry.arena_hook();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !is_read.load(Ordering::Relaxed) {
                hook.event(Event::Grow { size: 1 });
                is_begun.store(true, Ordering::Relaxed);
            }
        });
        tripoint_oracle::wait_until(|| is_begun.load(Ordering::Relaxed) || writer.is_finished());
        let report = run(&["report", "--json"], &path);
        is_read.store(true, Ordering::Relaxed);
        assert_eq!(report.status, Some(0), "{}", report.err);
        let report = report.json();
        let (read, missed) = (&report["events"]["grow"], &report["losses"]["events_missed"]);
        let seen = read.as_u64().unwrap_or(0) + missed.as_u64().unwrap();
        assert!(seen > 0 && report["is_closed"] == false, "{report}");
    });
}
