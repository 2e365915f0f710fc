//! Reports that hold, and each way in which one does not (design/gates.md `.judge`).

use serde_json::{Value, json};

use crate::{gate, has_python, scratch, text};

/// A report of a run in which all went well, as far as it is judged.
fn sound_report() -> Value {
    json!({
        "steady_messages": 10,
        "steady_seconds": 60.5,
        "book_matches_reference": true,
        "steady": {
            "arena_growth_bytes": 0, "fills": 10, "global_allocator_calls": 0,
            "minor_page_faults": 0, "major_page_faults": 0,
        },
        "latency_ns": { "p99": 100, "p999": 1_000, "p9999": 10_000 },
        "contract": {
            "armed": true, "live_detectors": ["allocator"], "alarms": 0, "records_lost": 0, "violations": [],
            "amnesties": { "entered": 10, "budget": 10 },
        },
    })
}

/// `.judge`: each part of the report that is examined can make the gate fail.
#[test]
fn judge_fails_at_every_fault() {
    if !has_python() {
        return;
    }
    let directory = scratch("judge");
    let (report, baseline) = (directory.join("report.json"), directory.join("baseline.json"));
    std::fs::write(&baseline, sound_report().to_string()).unwrap();
    let judge = |value: &Value| {
        std::fs::write(&report, value.to_string()).unwrap();
        let files = [report.to_str().unwrap(), baseline.to_str().unwrap()];
        gate("judge", "judged", &[&["--seconds", "60"], &files[..]].concat())
    };
    let sound = judge(&sound_report());
    assert!(sound.status.success() && sound.stdout.is_empty(), "{sound:?}");
    for (place, value, told) in [
        ("/contract/armed", json!(false), "never armed"),
        ("/contract/live_detectors", json!([]), "live detectors: []"),
        ("/contract/alarms", json!(1), "alarms: 1"),
        ("/contract/alarms", json!(false), "alarms: false"),
        ("/contract/violations", json!({}), "violations are not in the report"),
        ("/contract/records_lost", json!(1), "records lost: 1"),
        ("/contract/amnesties/entered", json!(11), "amnesties: 11 of 10"),
        ("/contract/amnesties/budget", json!(10.5), "amnesties: 10 of 10.5"),
        ("/steady_messages", json!(0), "no record came after the warm-up"),
        ("/steady_messages", json!(true), "no record came after the warm-up"),
        ("/steady_seconds", json!(59.9), "steady part: 59.9 s, and 60 s were asked for"),
        ("/steady_seconds", Value::Null, "steady part: null s, and 60 s were asked for"),
        ("/book_matches_reference", json!(false), "differs from the reference"),
        ("/steady/arena_growth_bytes", json!(1), "arena_growth_bytes: 1"),
        ("/steady/fills", json!(11), "fills: 11, in 10 amnesties"),
        ("/steady/fills", json!(-1), "fills: -1, in 10 amnesties"),
        ("/steady/global_allocator_calls", json!(1), "global_allocator_calls: 1"),
        ("/steady/minor_page_faults", json!(1), "minor_page_faults: 1"),
        ("/steady/major_page_faults", Value::Null, "major_page_faults: null"),
        ("/latency_ns/p99", json!(-1), "latency: p99 is -1 ns"),
        ("/latency_ns/p99", json!(201), "latency: p99 is 201 ns, above 2 times 100 ns"),
        ("/latency_ns/p999", json!(5_001), "latency: p999 is 5001 ns, above 5 times 1000 ns"),
        ("/latency_ns/p9999", json!(100_001), "latency: p9999 is 100001 ns, above 10 times 10000 ns"),
    ] {
        let mut value_with_fault = sound_report();
        *value_with_fault.pointer_mut(place).unwrap() = value;
        let output = judge(&value_with_fault);
        assert_eq!(output.status.code(), Some(1), "{place}: {output:?}");
        assert_eq!(text(&output).lines().count(), 1, "{place}: {output:?}");
        assert!(text(&output).contains(told), "{place}: {output:?}");
    }
    let mut violated = sound_report();
    violated["contract"]["violations"] =
        json!([{ "thread": "hot", "class": "alloc", "site": "f at f.rs:1", "count": 1, "bytes": 8 }]);
    assert_eq!(text(&judge(&violated)), "violations: 1\n  thread hot: alloc x1, 8 bytes, in f at f.rs:1\n");
}

/// `.judge`: what is not there, or cannot be read, does not hold.
#[test]
fn judge_fails_at_what_it_cannot_read() {
    if !has_python() {
        return;
    }
    let directory = scratch("judge-unread");
    let (report, baseline) = (directory.join("report.json"), directory.join("baseline.json"));
    let sound = sound_report().to_string();
    let judge = |judged: &str, base: &str| {
        std::fs::write(&report, judged).unwrap();
        std::fs::write(&baseline, base).unwrap();
        gate("judge", "judged-unread", &[report.to_str().unwrap(), baseline.to_str().unwrap()])
    };
    let without = |part: &str, key: &str| {
        let mut value = sound_report();
        value[part].as_object_mut().unwrap().remove(key).unwrap();
        value.to_string()
    };
    let two = format!("{sound} {sound}");
    let with = |was: &str, is: &str| sound.replacen(was, is, 1);
    let (nan, infinity) = (with("\"p99\":100", "\"p99\":NaN"), with("\"p99\":100", "\"p99\":1e999"));
    let odd = with("\"violations\":[]", "\"violations\":[1]");
    let (no_violations, no_latency) = (without("contract", "violations"), without("latency_ns", "p999"));
    for (judged, base) in [
        ("", &*sound),
        ("{", &sound),
        ("{}", &sound),
        (&two, &sound),
        (&no_violations, &sound),
        (&no_latency, &sound),
        (&nan, &sound),
        (&infinity, &sound),
        (&odd, &sound),
        (&sound, &nan),
        (&sound, &infinity),
        (&sound, ""),
        (&sound, "{"),
        (&sound, "{}"),
        (&sound, &no_latency),
    ] {
        let output = judge(judged, base);
        assert_eq!(output.status.code(), Some(1), "{judged} by {base}: {output:?}");
        assert!(!output.stdout.is_empty(), "a gate that asks prints why: {judged} by {base}");
    }
}
