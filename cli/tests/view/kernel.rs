//! `tripoint attach --kernel` (design/cli.md `.kernel`), on a program that knows nothing of it.
//!
//! Skipped, with a message, if the system does not let this user watch its own processes.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::Value;
use tripoint_oracle::wait_until;

use crate::run::{Ran, run, tripoint};

/// Tells the child to go on forever.
const CHILD: &str = "TRIPOINT_TEST_KERNEL";

const PAGE: usize = 4096;

/// More than the C library ever takes from its own heap.
const BYTES: usize = 64 << 20;

/// How many pages of it are written to.
const PAGES: usize = 100;

/// What the child runs. Without orders it does nothing. It prints a line for each round.
#[test]
fn the_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let named = |name: &str| thread::Builder::new().name(name.to_owned());
    let faulty = named("faulty").spawn(move || {
        for round in 0.. {
            println!("{round}");
            faults_in_the_child();
            // A thread that is not there when the watch begins.
            let late = named("late").spawn(faults_in_the_child).unwrap();
            late.join().unwrap();
        }
    });
    faulty.unwrap().join().unwrap();
}

#[inline(never)]
fn faults_in_the_child() {
    let mut bytes = vec![0_u8; BYTES];
    for page in 0..PAGES {
        bytes[page * PAGE] = 1;
    }
    core::hint::black_box(&bytes);
}

/// The child, which is ended at the end of the test.
struct Running {
    child: Ended,
    rounds: BufReader<ChildStdout>,
}

impl Running {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "kernel::the_child", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
        let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
        let rounds = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self { child: Ended(child), rounds };
        running.wait_for_rounds(1);
        running
    }

    /// Waits until the child has begun that many more rounds.
    fn wait_for_rounds(&mut self, count: usize) {
        let lines = (&mut self.rounds).lines().map(Result::unwrap);
        assert_eq!(lines.filter(|line| line.parse::<u64>().is_ok()).take(count).count(), count);
    }

    fn process(&self) -> String {
        self.child.0.id().to_string()
    }
}

/// A process that is ended at the end of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(process: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
}

/// Waits until a capture is begun. Returns false if the command has ended instead.
fn begins(attached: &mut Child, out: &Path) -> bool {
    wait_until(|| {
        thread::sleep(Duration::from_millis(20));
        out.exists() || attached.try_wait().unwrap().is_some()
    });
    out.exists()
}

/// Attaches by a command that ends with the options of `tripoint`, lets the child go on, and interrupts it. `None` if that
/// is not allowed here.
fn watch(mut command: Command, running: &mut Running, out: &Path, options: &[&str]) -> Option<Value> {
    command.args(["attach", "--json", "--kernel", "--duration", "1h", "-o", out.to_str().unwrap()]);
    command.args(options).arg(running.process()).stdin(Stdio::null());
    let mut attached = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if !begins(&mut attached, out) {
        let output = attached.wait_with_output().unwrap();
        tripoint_oracle::skipped!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    wait_until(|| {
        running.wait_for_rounds(20);
        std::fs::read_to_string(out).unwrap().matches("minor_fault").count() >= 2 * PAGES
    });
    signal(&attached, "-INT");
    let output = attached.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn report(path: &Path) -> Ran {
    run(&["report", "--json"], path)
}

fn rows<'v>(report: &'v Value, thread: &str, class: &str) -> Vec<&'v Value> {
    let all = report["violations"].as_array().unwrap().iter();
    all.filter(|row| row["name"] == thread && row["class"] == class).collect()
}

#[test]
fn faults_of_a_program_are_named_by_thread_function_and_line_and_judged_by_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("kernel.capture");
    let mut running = Running::start();
    let command = Command::new(env!("CARGO_BIN_EXE_tripoint"));
    let Some(captured) = watch(command, &mut running, &out, &["--threads", "faulty,other"]) else { return };
    assert_eq!(captured["has_ended"], false);
    let ran = report(&out);
    let told = ran.json();
    // What was captured is all that is reported, and it lasted as long as the watch.
    let events = told["events"].as_object().unwrap().values().map(|count| count.as_u64().unwrap());
    assert_eq!(
        (events.sum::<u64>(), &told["is_watched"]),
        (captured["events"].as_u64().unwrap(), &true.into())
    );
    assert!(told["seconds"].as_f64().unwrap() >= captured["seconds"].as_f64().unwrap(), "{told}");
    assert_eq!((&told["phase"], &told["phases"]), (&Value::Null, &Value::Array(Vec::new())));
    let text = run(&["report"], &out).out;
    assert!(
        text.contains("was running at the end of the watch, watched from outside, so without phases"),
        "{text}"
    );
    assert!(!text.contains("SteadyState") && !text.contains("has not closed"), "{text}");
    // Two threads: that with the name, and those that it starts.
    for name in ["faulty", "late"] {
        let found = rows(&told, name, "minor_fault");
        // The allocator writes to the first page itself.
        let is_ours = |row: &&Value| {
            row["site"]["function"].as_str().unwrap().ends_with("faults_in_the_child")
                && row["site"]["line"].as_str().unwrap().contains("kernel.rs:")
                && row["count"].as_u64().unwrap() >= PAGES as u64 - 1
                && row["kind"] == "fault"
        };
        assert!(found.iter().any(is_ours), "{name}: {told}");
    }
    let sees_calls = ran.status == Some(0);
    assert!(sees_calls || ran.err.contains("memory calls are not seen"), "{}", ran.err);

    let budget = folder.path().join("budget.toml");
    let judged = |text: &str| {
        std::fs::write(&budget, text).unwrap();
        run(&["gate", "--json", "--budget", budget.to_str().unwrap()], &out)
    };
    let over = judged("[classes]\nmemory_call = 1000000").json();
    let breach =
        over["breaches"].as_array().unwrap().iter().find(|row| row["what"] == "minor_fault").unwrap();
    let mut sites = breach["sites"].as_array().unwrap().iter().map(|site| site.as_str().unwrap());
    assert!(sites.any(|site| site.contains("faults_in_the_child")), "{breach}");
    let within =
        judged("[classes]\nminor_fault = 1000000000\nmajor_fault = 1000000000\nmemory_call = 1000000000");
    assert_eq!(within.json()["breaches"], Value::Array(Vec::new()));
    // A capture without memory calls is no proof that there were none.
    assert_eq!(within.status, Some(if sees_calls { 0 } else { 2 }), "{}", within.err);
}

#[test]
fn memory_calls_are_seen_if_tracepoints_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("kernel.capture");
    let mut running = Running::start();
    // In a namespace of its own, so that nothing is mounted for others.
    let mut command = Command::new("unshare");
    let mount = "mount -t tracefs tracefs /sys/kernel/tracing && exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", mount, env!("CARGO_BIN_EXE_tripoint")]);
    let Some(_) = watch(command, &mut running, &out, &[]) else { return };
    let ran = report(&out);
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    let told = ran.json();
    for kind in ["mmap", "munmap"] {
        let found = rows(&told, "faulty", "memory_call");
        let row = found.iter().find(|row| row["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {told}"));
        let (count, bytes) = (row["count"].as_u64().unwrap(), row["bytes"].as_u64().unwrap());
        assert!(count > 0 && bytes >= count * PAGE as u64, "{row}");
    }
    // The time line has them, too.
    let line = folder.path().join("line");
    assert_eq!(run(&["report", "--perfetto", line.to_str().unwrap()], &out).status, Some(0));
    let line = std::fs::read(line).unwrap();
    assert!(line.windows(17).any(|bytes| bytes == b"mmap: memory_call"));
}

#[test]
fn records_that_find_no_room_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("kernel.capture");
    let mut running = Running::start();
    let mut command = tripoint(
        &["attach", "--json", "--kernel", "--duration", "1h", "-o", out.to_str().unwrap()],
        Path::new(&running.process()),
    );
    let mut attached = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if !begins(&mut attached, &out) {
        return tripoint_oracle::skipped!("it may not be watched");
    }
    signal(&attached, "-STOP");
    // More than two rings have room for.
    running.wait_for_rounds(200);
    signal(&attached, "-CONT");
    wait_until(|| {
        running.wait_for_rounds(20);
        std::fs::read_to_string(&out).unwrap().contains("\"missed\"")
    });
    drop(running);
    let output = attached.wait_with_output().unwrap();
    let captured: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(captured["missed"].as_u64().unwrap() > 0 && captured["has_ended"] == true, "{captured}");
    assert_eq!(report(&out).json()["losses"]["events_missed"], captured["missed"]);
}

/// What finds no room at the very end is told by no later record.
#[test]
fn all_faults_are_captured_or_counted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("kernel.capture");
    // Each line that it reads lets it write to more pages than the rings have room for.
    let script = "import mmap\nwhile input():\n m = mmap.mmap(-1, 4096 * 20000)\n for page in range(20000): m[4096 * page] = 1\n print('done')";
    let mut python = Command::new("python3");
    python.args(["-uc", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(child) = python.spawn() else { return tripoint_oracle::skipped!("there is no python3") };
    let mut child = Ended(child);
    let mut attached = Command::new(env!("CARGO_BIN_EXE_tripoint"));
    attached.args(["attach", "--json", "--kernel", "--duration", "1h", "-o", out.to_str().unwrap()]);
    let mut attached =
        attached.arg(child.0.id().to_string()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if !begins(&mut attached, &out) {
        return tripoint_oracle::skipped!("it may not be watched");
    }
    signal(&attached, "-STOP");
    writeln!(child.0.stdin.as_mut().unwrap(), "go").unwrap();
    let mut line = String::new();
    BufReader::new(child.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    // It ends as soon as it goes on.
    signal(&attached, "-INT");
    signal(&attached, "-CONT");
    let output = attached.wait_with_output().unwrap();
    let captured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [events, missed] = ["events", "missed"].map(|name| captured[name].as_u64().unwrap());
    assert!(missed > 0 && events + missed >= 20_000, "{captured}");
}

#[test]
fn what_cannot_be_watched_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("kernel.capture");
    let running = Running::start();
    let process = running.process();
    for (target, options, expected) in [
        ("4294967294", &[][..], "there is no process 4294967294"),
        ("/dev/null", &[], "number of a process"),
        (&process, &["--threads", "none-such"], "no thread with the name none-such"),
    ] {
        let arguments = [&["attach", "--kernel", "-o", out.to_str().unwrap()], options].concat();
        let ran = run(&arguments, Path::new(target));
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{target}");
        assert!(ran.err.contains(expected) && !out.exists(), "{target}: {}", ran.err);
    }
    let ran = run(&["attach", "--threads", "faulty", "-o", out.to_str().unwrap()], Path::new(&process));
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("--kernel"), "{}", ran.err);

    // Another user's process.
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--clear-groups", env!("CARGO_BIN_EXE_tripoint"), "attach", "--kernel"]);
    match other.args(["-o", out.to_str().unwrap(), &process]).output() {
        Ok(ran) if ran.status.code() == Some(2) => {
            let err = String::from_utf8_lossy(&ran.stderr);
            assert!(err.contains("perf_event_paranoid") && err.contains("CAP_PERFMON"), "{err}");
        }
        other => tripoint_oracle::skipped!("no other user here: {other:?}"),
    }
}
