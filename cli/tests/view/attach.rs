//! `tripoint attach` (design/cli.md `.attach`).

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tripoint_core::{Event, EventHook};

use crate::recorded::{Hot, Recorded};
use crate::run::{Ran, run};

fn attach(target: &Path, out: &Path, duration: &str) -> Ran {
    run(&["attach", "--json", "--duration", duration, "--output", out.to_str().unwrap()], target)
}

/// A report of all events.
fn report(path: &Path) -> Value {
    run(&["report", "--json", "--all"], path).json()
}

#[test]
fn a_report_of_a_capture_is_that_of_the_recording() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let out = recorded.folder().join("capture");
    let captured = attach(&recorded.path(), &out, "50ms");
    assert_eq!(captured.status, Some(0), "{}", captured.err);
    let captured = captured.json();
    assert_eq!((&captured["missed"], &captured["has_ended"]), (&0.into(), &false.into()));
    assert_eq!(report(&out), report(&recorded.path()));
    assert_eq!(run(&["gate"], &out).status, Some(1));
}

#[test]
fn it_ends_when_the_process_ends() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let (path, out) = (recorded.path(), recorded.folder().join("capture"));
    let _folder = recorded.close();
    let captured = attach(&path, &out, "1000days").json();
    assert_eq!(captured["has_ended"], true);
}

/// What is known of it ends with its last event, however late it is read.
#[test]
fn a_capture_of_a_process_that_was_killed_does_not_say_that_it_ran() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let killed = recorded.killed();
    let out = recorded.folder().join("capture");
    let captured = attach(&killed, &out, "1000days");
    assert_eq!((captured.status, &captured.json()["has_ended"]), (Some(0), &true.into()));
    for target in [&killed, &out] {
        let text = run(&["report"], target).out;
        assert!(text.contains("has ended without closing its recording"), "{text}");
        assert!(!text.contains("running"), "{text}");
        let gate = run(&["gate"], target).out;
        assert!(gate.contains(" process       has ended without closing its recording\n"), "{gate}");
    }
    assert_eq!(report(&out), report(&killed));
    let judged = |path| run(&["gate", "--json"], path).json();
    assert_eq!(judged(&out)["checked"], judged(&killed)["checked"]);
    // Nor do pictures go on until it was captured.
    let text = std::fs::read_to_string(&out).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = |of: &dyn Fn(&Value) -> &Value| lines.iter().filter_map(|line| of(line).as_u64()).max();
    assert_eq!(last(&|line| &line["look"]["ns"]), last(&|line| &line["ns"]));
}

#[test]
fn what_was_overwritten_is_counted() {
    let recorded = Recorded::empty();
    let hook = recorded.telemetry.arena_hook();
    let events = 5000;
    (0..events).for_each(|_| hook.event(Event::Grow { size: 1 }));
    let out = recorded.folder().join("capture");
    let captured = attach(&recorded.path(), &out, "0s").json();
    let [read, missed] = ["events", "missed"].map(|name| captured[name].as_u64().unwrap());
    // The duration is over after the first event.
    assert!(missed > 0 && read <= 1 && missed < events, "{captured}");
    let report = report(&out);
    assert_eq!(report["losses"]["events_missed"], missed);
}

/// The disk is one of its own, in a namespace of its own.
#[test]
fn a_full_disk_is_named_and_what_is_on_it_is_reported() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let hook = recorded.telemetry.arena_hook();
    (0..1000).for_each(|_| hook.event(Event::Grow { size: 1 }));
    let disk = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=16k tmpfs \"$2\" || exit 77
        \"$0\" attach --duration 10s -o \"$2/capture\" \"$1\"; echo status $?; \"$0\" report \"$2/capture\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_tripoint")]);
    let output = match command.arg(recorded.path()).arg(disk.path()).output() {
        Ok(output) if output.status.code() != Some(77) && !output.stdout.is_empty() => output,
        other => return tripoint_oracle::skipped!("there is no mount namespace: {other:?}"),
    };
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(out.starts_with("status 2\n") && out.contains("events"), "{out}{err}");
    assert!(err.contains("cannot write the capture") && err.contains("No space left"), "{err}");
    assert!(err.contains("no last line"), "{err}");
}

/// A recording that is cut off under a running process ends the process.
#[test]
fn a_file_that_is_there_is_left_alone() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let before = recorded.bytes();
    let captured = attach(&recorded.path(), &recorded.path(), "1ms");
    assert_eq!(captured.status, Some(2));
    assert!(captured.err.contains("cannot create the capture"), "{}", captured.err);
    assert!(captured.err.contains("remove it, or choose another name"), "{}", captured.err);
    assert!(recorded.bytes() == before);
}

/// (design/cli.md `.req.readable`)
#[test]
fn a_capture_that_is_cut_off_is_reported_as_far_as_it_goes() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let out = recorded.folder().join("capture");
    // It has ended, so all of it is captured however long that takes.
    attach(&recorded.killed(), &out, "1000days");
    let bytes = std::fs::read(&out).unwrap();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
    let whole = report(&out);

    let without_end = recorded.beside("without-end", &lines[..lines.len() - 1].concat());
    let cut = run(&["report", "--json", "--all"], &without_end);
    assert_eq!(cut.status, Some(2));
    assert!(cut.err.contains("no last line"), "{}", cut.err);
    assert_eq!(cut.json()["events"], whole["events"]);
    // What is missing says nothing of how the program is wired.
    let text = run(&["report"], &without_end);
    assert!(text.out.contains("last phase Teardown"), "{}", text.out);
    let gate = run(&["gate"], &without_end);
    assert_eq!(gate.status, Some(2), "{}", gate.out);
    assert!(gate.out.contains("recording: ") && !gate.out.contains("observe_with"), "{}", gate.out);
    let advice = run(&["advise"], &without_end);
    assert!(!advice.out.contains("no arena was recorded"), "{}", advice.out);
    let traced = run(&["replay"], &out);
    assert!(traced.err.contains("--telemetry"), "{}", traced.err);

    let within_line = recorded.beside("within-line", &bytes[..lines[0].len() + lines[1].len() / 2]);
    let cut = run(&["report", "--json", "--all"], &within_line);
    assert_eq!(cut.status, Some(2));
    assert!(cut.err.contains("cut off within line 2,"), "{}", cut.err);

    let without_sense = [lines[0], b"no JSON\n", &lines[1..].concat()].concat();
    let bad = run(&["report", "--json", "--all"], &recorded.beside("without-sense", &without_sense));
    assert_eq!(bad.status, Some(2));
    assert!(bad.err.contains("1 line could not be read, the first: line 2:"), "{}", bad.err);

    let tiny = run(&["report"], &recorded.beside("tiny", &lines[0][..lines[0].len() - 1]));
    assert_eq!((tiny.status, tiny.out.as_str()), (Some(2), ""));
    assert!(tiny.err.contains("cut off within its first line"), "{}", tiny.err);

    let newer = [b"{\"tripoint_capture\":3,\"process\":1}\n".as_slice(), lines[1]].concat();
    let newer = run(&["report"], &recorded.beside("newer", &newer));
    assert_eq!((newer.status, newer.out.as_str()), (Some(2), ""));
    assert!(newer.err.contains("version 3"), "{}", newer.err);
}

/// (design/cli.md `.capture.look`)
#[test]
fn a_capture_of_the_version_before_looks_is_reported() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let (path, out) = (recorded.path(), recorded.folder().join("capture"));
    // It has ended, so all of it is captured however long that takes.
    let folder = recorded.close();
    attach(&path, &out, "1000days");
    let text = std::fs::read_to_string(&out).unwrap();
    let looks = text.lines().filter(|line| line.starts_with("{\"look\":")).count();
    assert!(looks >= 1 && text.contains(",\"ns\":"), "{text}");
    let before: String = text
        .lines()
        .filter(|line| !line.starts_with("{\"look\":"))
        .map(|line| line.replace("{\"tripoint_capture\":2", "{\"tripoint_capture\":1") + "\n")
        .collect();
    let (last, rest) = before.trim_end().rsplit_once('\n').map(|(rest, last)| (last, rest)).unwrap();
    let mut end: Value = serde_json::from_str(last).unwrap();
    end.as_object_mut().unwrap().remove("ns");
    // The counters come first in the last line.
    let counters = end.as_object_mut().unwrap().remove("counters").unwrap();
    let tail = end.to_string();
    let before = format!("{rest}\n{{\"counters\":{counters},{}\n", &tail[1..]);
    let old = folder.path().join("old");
    std::fs::write(&old, before).unwrap();
    let reported = run(&["report", "--json", "--all"], &old);
    assert_eq!(reported.status, Some(1), "a violation: {}", reported.err);
    assert_eq!(reported.json(), report(&path));
}
