//! The program from outside.

mod inputs;
mod lobster;
mod outputs;
mod steady;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn exchange(arguments: &[&str]) -> Output {
    undisturbed(|| Command::new(env!("CARGO_BIN_EXE_exchange")).args(arguments).output().unwrap())
}

/// Runs it, again if all that failed was a page fault, and the kernel moved pages meanwhile: a page that is moved faults
/// once, whosever it is (design/contract.md `.runtime.compaction`).
fn undisturbed(run: impl Fn() -> Output) -> Output {
    const AGAIN: usize = 5;
    let mut before = pages_moved();
    for _ in 0..AGAIN {
        let ran = run();
        let summary = text(&ran.stdout);
        let mut alarms = summary.lines().filter(|line| line.trim_start().starts_with("alarm: ")).peekable();
        let is_fault = alarms.peek().is_some() && alarms.all(|line| line.contains("alarm: minor_fault "));
        let after = pages_moved();
        if ran.status.success() || !is_fault || after == before {
            return ran;
        }
        eprintln!("run again: a page fault, while the kernel moved {before:?} to {after:?} pages");
        before = after;
    }
    run()
}

/// Pages that the kernel has moved since the machine began; `None` if it does not say.
fn pages_moved() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("pgmigrate_success "))?.parse().ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of this test run.
fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

/// The same, with contents, by its path.
fn file(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = scratch(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Whether the steady part cost nothing.
fn assert_zeros(ran: &Output) {
    let summary = text(&ran.stdout);
    assert!(ran.status.success(), "{summary}{}", text(&ran.stderr));
    assert_eq!(value(&summary, "contract"), "armed, 0 alarms");
    assert_eq!(value(&summary, "arena growth"), "0 bytes");
    assert_eq!(value(&summary, "global allocator"), "0 calls");
    assert_eq!(value(&summary, "memory calls"), "0 to the kernel");
    assert_eq!(value(&summary, "page faults"), "0 minor, 0 major");
}

const SMALL: [&str; 6] = ["--messages", "60000", "--live", "2000", "--symbols", "50"];

fn run_small(more: &[&str]) -> Output {
    exchange(&[&["run", "--warmup", "20000"], &SMALL[..], more].concat())
}

/// What the line of a summary that begins with this says.
fn value(summary: &str, name: &str) -> String {
    let line = summary.lines().find(|line| line.trim_start().starts_with(name));
    line.unwrap_or_else(|| panic!("{name} is not in {summary}")).trim_start()[name.len()..].trim().to_owned()
}

/// (design/exchange.md `.req.zero`, `.req.pools`)
#[test]
fn a_day_over_pools_costs_nothing_in_its_steady_part() {
    assert_zeros(&run_small(&[]));
}

/// (design/exchange.md `.req.homes`)
#[test]
fn books_do_not_depend_on_where_orders_live() {
    let sums: Vec<_> = ["pools", "point", "owned", "hand", "system"]
        .iter()
        .map(|home| {
            let ran = run_small(&["--orders", home]);
            // A general allocator may ask the kernel for memory, which is a violation.
            assert!(*home == "system" || ran.status.success(), "{home}: {}", text(&ran.stderr));
            value(&text(&ran.stdout), "hash of all books")
        })
        .collect();
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
}

/// (design/exchange.md `.inject`)
#[test]
fn injected_violations_are_found() {
    for (injection, class) in [
        ("alloc", "alarm: alloc"),
        ("growth", "growth"),
        ("fault", "minor_fault"),
        ("mmap", "memory_call mmap"),
    ] {
        let ran = run_small(&["--inject", injection]);
        assert_eq!(ran.status.code(), Some(1), "{injection}");
        assert!(text(&ran.stdout).contains(class), "{injection}: {}", text(&ran.stdout));
        assert!(text(&ran.stderr).contains("the contract was violated"));
    }
}

fn run_input(bytes: &[u8], more: &[&str]) -> Output {
    let room: &[&str] = if more.contains(&"--room") { &[] } else { &["--room", "10000"] };
    let arguments = [&["run", "--input", "-", "--warmup", "20000"], room, more].concat();
    undisturbed(|| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_exchange"))
            .args(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses its input need not read all of it.
        let _ = child.stdin.take().unwrap().write_all(bytes);
        child.wait_with_output().unwrap()
    })
}

/// (design/exchange.md `.req.forms`)
#[test]
fn a_file_a_packet_capture_and_the_generator_agree() {
    let file = exchange(&[&["day"], &SMALL[..]].concat()).stdout;
    let packets = exchange(&[&["day", "--form", "packets"], &SMALL[..]].concat()).stdout;
    let sums = [run_small(&[]), run_input(&file, &[]), run_input(&packets, &[])].map(|ran| {
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        value(&text(&ran.stdout), "hash of all books")
    });
    assert!(sums[0] == sums[1] && sums[1] == sums[2], "{sums:?}");
}

/// (design/exchange.md `.req.damage`)
#[test]
fn what_ends_a_run_is_named_and_what_came_before_is_reported() {
    let file = exchange(&[&["day"], &SMALL[..]].concat()).stdout;
    let mut damaged = file.clone();
    let half = file.len() / 2;
    damaged.truncate(half);
    let ran = run_input(&damaged, &[]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains(" at byte ") && text(&ran.stderr).contains("the input ends"));
    assert!(text(&ran.stdout).contains("live orders"));
    let few = run_input(&file, &["--room", "500"]);
    assert!(text(&few.stderr).contains("orders-full: 500 orders are live"), "{}", text(&few.stderr));
    assert!(text(&run_input(b"", &[]).stderr).contains("empty"));
}

/// (design/exchange.md `.req.homes`)
#[test]
fn homes_are_compared_in_all_phases() {
    let path = std::env::temp_dir().join(format!("exchange-compare-{}.json", std::process::id()));
    let picture = path.with_extension("svg");
    let small = ["--live", "2e3", "--symbols", "50", "--chunk", "2000", "--chunks", "2"];
    let files = ["--json", path.to_str().unwrap(), "--picture", picture.to_str().unwrap()];
    let arguments = [&["compare"], &files[..], &small[..]].concat();
    let ran = exchange(&arguments);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let summary = text(&ran.stdout);
    for phase in [
        "open",
        "steady",
        "down",
        "burst",
        "back",
        "night",
        "morning",
        "second",
        "noisy",
        "end of day, in ms",
    ] {
        assert!(summary.lines().any(|line| line.starts_with(&format!("{phase}: "))), "{phase}: {summary}");
    }
    let json = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(json.contains("\"phase\":\"burst\"") && json.contains("\"end_ns\":{"), "{json}");
    assert_eq!(exchange(&["compare", "--live", "1e12"]).status.code(), Some(2));
    // A dot for each ratio, and the name of each home, and phase, in the picture.
    let drawn = std::fs::read_to_string(&picture).unwrap();
    std::fs::remove_file(&picture).unwrap();
    assert_eq!(drawn.matches("<circle ").count(), json.matches("\"to_hand\":").count(), "{drawn}");
    assert!(["hand", "pools-huge", "burst", "second"].iter().all(|word| drawn.contains(word)), "{drawn}");
    let without = exchange(&["compare", "--homes", "pools", "--picture", picture.to_str().unwrap()]);
    assert!(!without.status.success() && text(&without.stderr).contains("--homes"));
}

/// (design/exchange.md `.compare.gateway`)
#[test]
fn homes_are_compared_whose_orders_cross_threads() {
    let small = ["--live", "1e3", "--symbols", "50", "--chunk", "1000", "--chunks", "2"];
    let ran = exchange(&[&["compare", "--gateway"], &small[..]].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let said = text(&ran.stdout);
    for home in ["hand", "pools", "system"] {
        let row = said.lines().find(|line| line.split_whitespace().next() == Some(home));
        assert_eq!(row.map(|row| row.split_whitespace().count()), Some(7), "{said}");
    }
}

/// (design/exchange.md `.compare.processes`)
#[test]
fn several_processes_compare_and_say_the_least_and_the_greatest() {
    let small = ["--live", "1e3", "--symbols", "50", "--chunk", "1000", "--chunks", "2", "--brief"];
    let more = ["compare", "--processes", "3", "--homes", "hand,pools"];
    let ran = exchange(&[&more[..], &small].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let said = text(&ran.stdout);
    let pools: Vec<_> = said.lines().filter(|line| line.starts_with("  pools ")).collect();
    // What it is, two phases with the least and the greatest ratio, and the end of the day.
    assert_eq!(pools.len(), 4, "{said}");
    assert_eq!(pools.iter().filter(|line| line.contains(" to ")).count(), 2, "{said}");
    assert!(!said.contains("system"), "{said}");
}

#[test]
fn the_report_is_json_too() {
    let path = std::env::temp_dir().join(format!("exchange-{}.json", std::process::id()));
    let ran = run_small(&["--json", path.to_str().unwrap()]);
    assert!(ran.status.success());
    let json = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(json.starts_with("{\"messages\":60") && json.contains("\"allocator_calls\":0,"), "{json}");
    let depth = |open, close| json.matches(open).count() == json.matches(close).count();
    assert!(depth('{', '}') && depth('[', ']') && json.matches('"').count().is_multiple_of(2));
}

fn run_engine(more: &[&str]) -> Output {
    exchange(&[&["engine", "--warmup", "20000"], &SMALL[..], more].concat())
}

/// (design/exchange.md `.req.engine`, `.engine.run`, `.engine.gateway`)
/// What an engine's thread says that cost nothing.
const ZEROS: &str = "arena growth 0, allocator calls 0, memory calls 0, page faults 0; ";

#[test]
fn a_gateway_is_steady_from_its_first_requests_on() {
    let ran = exchange(&[&["engine", "--gateway", "--warmup", "100"], &SMALL[..]].concat());
    assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    assert!(value(&text(&ran.stdout), "gateway").contains(ZEROS), "{}", text(&ran.stdout));
}

#[test]
fn the_books_of_a_feed_are_the_engines_wherever_orders_live() {
    let ways: [&[&str]; 6] = [
        &[],
        &["--orders", "point"],
        &["--orders", "owned"],
        &["--orders", "hand"],
        &["--gateway"],
        &["--gateway", "--orders", "system"],
    ];
    let sums = ways.map(|way| {
        let ran = run_engine(way);
        let summary = text(&ran.stdout);
        // A general allocator may ask the kernel for memory, which is a violation.
        if !way.contains(&"system") {
            assert!(ran.status.success(), "{way:?}: {summary}{}", text(&ran.stderr));
            assert_eq!(value(&summary, "contract"), "armed, 0 alarms");
            for thread in ["engine", "builder"] {
                let work = value(&summary, thread);
                assert!(work.contains(ZEROS), "{way:?}: {thread} {work}");
            }
        }
        assert!(!text(&ran.stderr).contains("differ"), "{way:?}: {}", text(&ran.stderr));
        value(&summary, "hash of all books")
    });
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    assert_eq!(run_engine(&["--gateway", "--orders", "hand"]).status.code(), Some(1));
}

/// (design/exchange.md `.engine.compare`)
#[test]
fn a_feed_with_a_flaw_is_found() {
    for kind in ["shares", "omit"] {
        let ran = run_engine(&["--flaw", "30000", "--flaw-kind", kind]);
        assert_eq!(ran.status.code(), Some(1), "{kind}");
        let found = text(&ran.stderr);
        let names_both = found.contains("the engine's sum is") && found.contains("the builder's");
        assert!(
            found.contains("message 30") && (names_both || found.contains("is refused")),
            "{kind}: {found}"
        );
    }
}

/// (design/exchange.md `.run.stop`)
#[cfg(unix)]
#[test]
fn a_signal_ends_the_input_and_what_came_before_is_reported() {
    let day = exchange(&[&["day"], &SMALL[..]].concat()).stdout;
    let mut running = Command::new(env!("CARGO_BIN_EXE_exchange"))
        .args(["run", "--input", "-", "--warmup", "20000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = running.stdin.take().unwrap();
    // More than a pipe holds, so that the program reads when this returns.
    input.write_all(&day).unwrap();
    let id = libc::pid_t::try_from(running.id()).unwrap();
    // SAFETY: the process was not waited for, so the number is its own.
    assert_eq!(unsafe { libc::kill(id, libc::SIGTERM) }, 0);
    // The input stays open.
    let ran = running.wait_with_output().unwrap();
    drop(input);
    let said = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(128 + libc::SIGTERM), "{said}{}", text(&ran.stderr));
    assert!(said.contains("by signal 15") && said.contains("hash of all books"), "{said}");
}

/// (design/exchange.md `.outputs.same`)
#[test]
fn no_output_is_an_input_or_another_output() {
    let path = std::env::temp_dir().join(format!("exchange-same-{}", std::process::id()));
    let day = exchange(&[&["day"], &SMALL[..]].concat()).stdout;
    std::fs::write(&path, &day).unwrap();
    let name = path.to_str().unwrap();
    let again =
        format!("{}/./{}", path.parent().unwrap().display(), path.file_name().unwrap().to_str().unwrap());
    for (one, other) in [("--book", "--json"), ("--tops", "--trades")] {
        for options in [["--input", name, one, &again], [one, "/nowhere/a", other, "/nowhere/a"]] {
            let ran = exchange(&[&["run"], &options[..]].concat());
            assert!(
                !ran.status.success() && text(&ran.stderr).contains("are one file"),
                "{}",
                text(&ran.stderr)
            );
        }
    }
    assert_eq!(std::fs::read(&path).unwrap(), day);
    std::fs::remove_file(&path).unwrap();
}

/// (design/exchange.md `.engine.run`)
#[test]
fn an_engine_without_a_steady_part_fails() {
    let ran = exchange(&[&["engine", "--warmup", "900000"], &SMALL[..]].concat());
    assert!(!ran.status.success() && text(&ran.stderr).contains("--warmup"), "{}", text(&ran.stderr));
}

/// (design/exchange.md `.compare.processes`)
#[cfg(target_os = "linux")]
#[test]
fn processes_that_compare_end_with_the_first() {
    use core::time::Duration;
    use std::time::Instant;
    let alive = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // A zombie has ended, too.
        status.is_ok_and(|status| !status.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    };
    let mut first = Command::new(env!("CARGO_BIN_EXE_exchange"))
        .args(["compare", "--processes", "2", "--live", "1e6", "--chunks", "10000", "--homes", "hand,pools"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{pid}/task/{pid}/children", pid = first.id());
    let deadline = Instant::now() + Duration::from_secs(60);
    let other = loop {
        let listed = std::fs::read_to_string(&children).unwrap();
        match listed.split_whitespace().next() {
            // It has asked for its end by the time that its program is ours.
            Some(other)
                if std::fs::read_to_string(format!("/proc/{other}/cmdline"))
                    .is_ok_and(|line| line.contains("--rows")) =>
            {
                break other.to_owned();
            }
            _ => assert!(Instant::now() < deadline, "no process has begun"),
        }
        std::thread::yield_now();
    };
    assert!(alive(&other));
    first.kill().unwrap();
    first.wait().unwrap();
    while alive(&other) {
        assert!(Instant::now() < deadline, "the other process goes on");
        std::thread::yield_now();
    }
}
