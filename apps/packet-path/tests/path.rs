//! The packet path from outside: the same book, zeros, frames that are returned, and nothing that stays.
//!
//! Without the privilege that namespaces need, the tests of the wire say so, and show nothing.
#![cfg(target_os = "linux")]

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_packet-path");

/// Records of a short run, of which 2,000 are the warm-up.
const SHORT: [&str; 6] = ["--messages", "6000", "--warmup", "2000", "--rate", "0"];

fn report_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"))
}

/// A short run with a report to `name`.json.
fn command(name: &str, arguments: &[&str]) -> Command {
    let file = report_file(name);
    // A report of an earlier run would hide that this one wrote nothing.
    let _ = std::fs::remove_file(&file);
    let mut command = Command::new(PROGRAM);
    command.args(SHORT).args(arguments).arg("--json").arg(file);
    command
}

fn report(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(report_file(name)).unwrap()).unwrap()
}

/// Whether the system lets this user make wires. Says why not, once for each test.
fn has_wires() -> bool {
    let output = Command::new(PROGRAM).args(SHORT).args(["--receiver", "packet"]).output().unwrap();
    let is_refused = output.status.code() == Some(2);
    if is_refused {
        tripoint_oracle::skipped!("{}", String::from_utf8_lossy(&output.stderr));
    }
    !is_refused
}

fn assert_succeeds(output: &Output) {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

fn assert_home(report: &Value) {
    let frames = &report["wire"]["frames"];
    assert_eq!(frames["outstanding"], 0, "{report:#}");
    assert_eq!(frames["home"], frames["units"], "{report:#}");
}

/// design/packet-path.md `.req.pools`, `.req.zero`, `.req.home`.
fn assert_clean(report: &Value) {
    assert_eq!(report["messages"], 6_000, "{report:#}");
    assert_eq!(report["book_matches_reference"], true, "{report:#}");
    let steady = report["steady"].as_object().unwrap();
    assert!(steady.values().all(|cost| *cost == 0), "{report:#}");
    assert_eq!(report["contract"]["armed"], true, "{report:#}");
    assert_eq!(report["contract"]["alarms"], 0, "{report:#}");
    assert_home(report);
    assert_eq!(report["wire"]["unaccounted"], 0, "{report:#}");
    assert_eq!(report["wire"]["source"]["refused"], 0, "{report:#}");
}

/// The figures of the book, without those of time and cost.
fn figures(mut report: Value) -> Value {
    let figures = report.as_object_mut().unwrap();
    for key in [
        "wire",
        "picture",
        "contract",
        "steady_seconds",
        "steady",
        "latency_ns",
        "involuntary_switches",
        "messages_per_second",
    ] {
        figures.remove(key).unwrap();
    }
    report
}

/// design/packet-path.md `.req.same`.
#[test]
fn whatever_the_wire_does_the_book_is_the_same() {
    if !has_wires() {
        return;
    }
    let whole = "same-whole";
    assert_succeeds(&command(whole, &[]).output().unwrap());
    assert_clean(&report(whole));
    match &report(whole)["wire"] {
        wire if wire["fallback"].is_null() => assert_eq!(wire["receiver"], "AF_XDP", "{wire:#}"),
        wire => {
            assert_eq!(wire["receiver"], "PACKET_MMAP", "{wire:#}");
            tripoint_oracle::skipped!("{}", wire["fallback"]);
        }
    }
    for (name, receiver, arguments) in [
        (
            "same-xdp",
            "AF_XDP",
            &["--receiver", "xdp", "--drop", "10", "--duplicate", "10", "--reorder", "10"][..],
        ),
        ("same-single", "AF_XDP", &["--receiver", "xdp", "--drop", "5", "--per-datagram", "1"]),
        ("same-packet", "PACKET_MMAP", &["--receiver", "packet", "--drop", "10"]),
        ("same-io-uring", "io_uring", &["--receiver", "io-uring", "--drop", "10"]),
        ("same-recvmmsg", "recvmmsg", &["--receiver", "recvmmsg", "--drop", "10"]),
    ] {
        let output = command(name, arguments).output().unwrap();
        if output.status.code() == Some(2) {
            // Many systems do not allow one or the other.
            tripoint_oracle::skipped!("{}", String::from_utf8_lossy(&output.stderr));
            continue;
        }
        assert_succeeds(&output);
        let report = report(name);
        assert_clean(&report);
        let wire = &report["wire"];
        assert_eq!(wire["receiver"], receiver, "{name}: {wire:#}");
        let [dropped, recovered] =
            [&wire["sent"]["datagrams"]["dropped"], &wire["received"]["messages_recovered"]];
        assert!(dropped.as_u64() > Some(0) && recovered.as_u64() > Some(0), "{name}: {wire:#}");
        let is_call = name == "same-recvmmsg";
        assert_eq!(wire["source"]["calls"] != 0, is_call, "{name}: {wire:#}");
        let charts = &report["picture"]["charts"];
        for curve in [&charts[0]["content"]["lines"][0], &charts[1]["content"]["steps"][1]] {
            assert!(curve["points"].as_array().is_some_and(|points| points.len() > 20), "{name}: {curve:#}");
        }
        assert_eq!(figures(report), figures(self::report(whole)), "{name}");
    }
}

/// design/packet-path.md `.req.same`, `.req.home`.
#[test]
fn what_does_not_come_again_is_named() {
    if !has_wires() {
        return;
    }
    let output = command("gap", &["--drop", "5", "--unanswered"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("packet-path: gap: message"), "{stderr}");
    assert!(stderr.ends_with("lost, and did not come again\n"), "{stderr}");
    assert_home(&report("gap"));
}

/// A violation on the hot thread is seen on this path, too.
#[test]
fn an_injected_violation_is_an_alarm() {
    if !has_wires() {
        return;
    }
    assert_succeeds(&command("inject", &["--inject", "alloc"]).output().unwrap());
    let report = report("inject");
    assert_eq!(report["contract"]["alarms"], 2, "{report:#}");
    assert_eq!(report["steady"]["global_allocator_calls"], 2, "{report:#}");
    let output = command("fail-fast", &["--inject", "growth", "--policy", "failfast"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_home(&self::report("fail-fast"));
}

/// A record that is malformed is named by its line, as in the order book.
#[test]
fn a_malformed_record_is_named() {
    if !has_wires() {
        return;
    }
    let feed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("malformed");
    std::fs::write(&feed, "1 {\"result\":null}\n2 {\n").unwrap();
    let file = report_file("malformed");
    let output = Command::new(PROGRAM).arg("--input").arg(&feed).arg("--json").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("malformed: line 2: malformed record"), "{stderr}");
    assert_eq!(report("malformed")["messages"], 1);
    assert_home(&report("malformed"));
}

/// Waits until the run has a hot thread.
fn wait_for_hot(run: &mut Child) {
    let tasks = format!("/proc/{}/task", run.id());
    let is_hot = |task: std::io::Result<std::fs::DirEntry>| {
        task.and_then(|task| std::fs::read(task.path().join("comm"))).is_ok_and(|name| name == b"hot\n")
    };
    tripoint_oracle::wait_until(|| {
        assert!(run.try_wait().unwrap().is_none(), "the run has ended");
        std::fs::read_dir(&tasks).is_ok_and(|mut tasks| tasks.any(is_hot))
    });
}

/// design/packet-path.md `.req.alone`.
#[test]
fn runs_do_not_meet_also_if_one_is_killed() {
    if !has_wires() {
        return;
    }
    let mut killed = Command::new(PROGRAM);
    let mut killed = killed.args(["--messages", "1000000000"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for_hot(&mut killed);
    let mut beside = command("beside", &[]).stdout(Stdio::null()).spawn().unwrap();
    wait_for_hot(&mut beside);
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().signal(), Some(9));
    assert!(beside.wait().unwrap().success());
    assert_clean(&report("beside"));
    assert_succeeds(&command("after", &[]).output().unwrap());
    assert_clean(&report("after"));
}

/// design/packet-path.md `.req.bounded`.
#[test]
fn a_run_ends_by_its_time() {
    if !has_wires() {
        return;
    }
    let file = report_file("time");
    let arguments = ["--messages", "1000000000", "--seconds", "2", "--json"];
    assert_succeeds(&Command::new(PROGRAM).args(arguments).arg(&file).output().unwrap());
    let told = report("time");
    assert_eq!(told["book_matches_reference"], true, "{told:#}");
    assert!((1..1_000_000_000).contains(&told["messages"].as_u64().unwrap()), "{told:#}");
    assert_home(&told);
    // A capture of twenty seconds.
    let capture = capture("long.pcap", 20_000, 0);
    assert_succeeds(&send_capture("time-capture", &capture, &["--as-recorded", "--seconds", "2"]));
    let told = report("time-capture");
    assert_eq!(told["packets_match"], true, "{told:#}");
    assert!((1..20_000).contains(&told["sent"]["packets"].as_u64().unwrap()), "{told:#}");
    assert_home(&told);
}

/// The loopback interface needs no privilege; all else says which it needs.
#[test]
fn without_privilege_one_line_says_which_and_what_runs() {
    const NOBODY: u32 = 65_534;
    let run = |receiver: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(SHORT).args(["--receiver", receiver]);
        // A test run without the privilege has none to drop.
        if nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output()
    };
    let Ok(refused) = run("xdp") else {
        tripoint_oracle::skipped!("the program is where only its owner may run it");
        return;
    };
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("need CAP_SYS_ADMIN") && stderr.contains("--receiver loopback"), "{stderr}");
    assert_succeeds(&run("loopback").unwrap());
    // An input that is not there is told before a wire is asked for.
    let mut missing = Command::new(PROGRAM);
    missing.args(["--input", "/no/such/feed"]);
    if nix::unistd::geteuid().is_root() {
        missing.uid(NOBODY).gid(NOBODY);
    }
    let missing = missing.output().unwrap();
    let stderr = String::from_utf8(missing.stderr).unwrap();
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains("/no/such/feed") && stderr.lines().count() == 1, "{stderr}");
}

/// A capture of Ethernet with this many packets of many sizes, a millisecond apart; of the last, that many bytes are not there.
fn capture(name: &str, packets: u32, missing: usize) -> PathBuf {
    let word = |word: u32| word.to_le_bytes();
    let mut file = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1].map(word).concat();
    for number in 0..packets {
        // From none to more than thirty datagrams have room for.
        let size = if number % 100 == 99 { 60_000 } else { number * 37 % 1_500 };
        file.extend([number / 1_000, number % 1_000 * 1_000, size, size].map(word).concat());
        file.extend((0..size).map(|place| (place * 7 + number) as u8));
    }
    file.truncate(file.len() - missing);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, file).unwrap();
    path
}

/// A run of a capture with a report to `name`.json.
fn send_capture(name: &str, file: &Path, arguments: &[&str]) -> Output {
    let report = report_file(name);
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new(PROGRAM);
    command.arg("--pcap").arg(file).args(arguments).arg("--json").arg(report).output().unwrap()
}

/// design/packet-path.md `.pcap`.
#[test]
fn captured_packets_come_through_as_they_were() {
    let file = capture("whole.pcap", 2_000, 0);
    let ways: &[&[&str]] = match has_wires() {
        true => &[
            &["--receiver", "loopback"],
            &["--receiver", "packet", "--drop", "5", "--duplicate", "5", "--reorder", "5"],
            &["--receiver", "recvmmsg", "--as-recorded"],
        ],
        false => &[&["--receiver", "loopback"]],
    };
    for (number, way) in ways.iter().enumerate() {
        let name = format!("capture-{number}");
        assert_succeeds(&send_capture(&name, &file, way));
        let report = report(&name);
        assert_eq!(report["packets_match"], true, "{report:#}");
        assert_eq!(report["sent"]["packets"], 2_000, "{report:#}");
        assert_eq!(report["sent"]["links"]["ETHERNET"], 2_000, "{report:#}");
        for key in ["packets", "bytes", "digest"] {
            assert_eq!(report["sent"][key], report["received"]["packets"][key], "{report:#}");
        }
        let steady = report["received"]["steady"].as_object().unwrap();
        assert!(steady.values().all(|cost| *cost == 0), "{report:#}");
        assert_eq!((&report["contract"]["armed"], &report["contract"]["alarms"]), (&true.into(), &0.into()));
        assert_home(&report);
    }
}

#[test]
fn what_is_readable_of_a_capture_is_sent_and_reported() {
    let file = capture("cut.pcap", 500, 1);
    let output = send_capture("cut", &file, &["--receiver", "loopback"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cut.pcap: the capture is cut off in the middle of a packet"), "{stderr}");
    let told = report("cut");
    assert_eq!((&told["sent"]["packets"], &told["packets_match"]), (&499.into(), &true.into()), "{told:#}");
    assert_home(&told);

    let feed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no.pcap");
    std::fs::write(&feed, "1 {}\n").unwrap();
    let output = send_capture("none", &feed, &["--receiver", "loopback"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains("neither a file of pcap nor one of pcapng"), "{stderr}");
}

/// The control: a loss that is not made good is named, and the packets differ.
#[test]
fn a_captured_packet_that_is_lost_is_named() {
    let file = capture("lost.pcap", 2_000, 0);
    let output = send_capture("lost", &file, &["--receiver", "loopback", "--drop", "10", "--unanswered"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("gap: message"), "{stderr}");
    let told = report("lost");
    assert_eq!(told["packets_match"], false, "{told:#}");
    assert_home(&told);
}
