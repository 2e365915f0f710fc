//! `tripoint record` on a program that does what recorders forget, and `tripoint replay` of what was recorded.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

fn tripoint() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tripoint"))
}

/// A folder with the program in it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/odd.c");
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.arg("-w").arg("-fno-builtin").arg("-pthread").arg(source);
        assert!(compiler.arg("-o").arg(folder.path().join("odd")).status().unwrap().success());
        Self { folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("odd")
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// All traces, by the name of the file.
    fn traces(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        let mut traces: Vec<_> =
            files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("trace")).collect();
        traces.sort();
        traces
    }

    fn record(&self, options: &[&str], what: &str) -> Output {
        let mut command = tripoint();
        command.arg("record").arg("--quiet").args(options).arg("-o").arg(self.trace());
        command.arg("--").arg(self.program()).arg(what).output().unwrap()
    }

    /// Records what the program does with this argument, and compares its output and status with those of a run that is
    /// not recorded (design/cli-traces.md `.req.unchanged`).
    fn record_and_compare(&self, what: &str) {
        let plain = Command::new(self.program()).arg(what).output().unwrap();
        let recorded = self.record(&[], what);
        assert_eq!(recorded.stdout, plain.stdout, "{what}");
        assert_eq!(
            String::from_utf8_lossy(&recorded.stderr),
            String::from_utf8_lossy(&plain.stderr),
            "{what}"
        );
        let shown = plain.status.code().unwrap_or_else(|| 128 + plain.status.signal().unwrap());
        assert_eq!(recorded.status.code(), Some(shown), "{what}");
    }
}

/// What a replay says of a trace. The replay has found nothing wrong.
fn replayed(trace: &Path) -> Value {
    let mut command = tripoint();
    command.args(["--json", "replay", "--contents", "--with", "tlsf,system"]).arg(trace);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", trace.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Allocations, reallocs, frees, threads.
fn totals(trace: &Path) -> [u64; 4] {
    let report = replayed(trace);
    ["allocations", "reallocs", "frees", "threads"].map(|name| report["totals"][name].as_u64().unwrap())
}

/// The same, less what the program does without an argument.
fn own_totals(place: &Place, what: &str) -> [u64; 4] {
    place.record_and_compare("nothing");
    let nothing = totals(&place.trace());
    place.record_and_compare(what);
    let all = totals(&place.trace());
    core::array::from_fn(|index| all[index] - nothing[index])
}

const TIMES: u64 = 1000;

#[test]
fn every_function_of_the_family_is_recorded() {
    let place = Place::new();
    // Of the refused calls nothing is recorded, but one object was resized in vain.
    assert_eq!(own_totals(&place, "family"), [8 * TIMES + 1, 2 * TIMES, 8 * TIMES + 1, 0]);
}

#[test]
fn constructors_and_functions_at_exit_are_recorded() {
    let place = Place::new();
    assert_eq!(own_totals(&place, "early"), [0, 0, 1, 0]);
    assert_eq!(own_totals(&place, "at-exit"), [TIMES, 0, TIMES, 0]);
}

#[test]
fn threads_are_recorded_as_threads_with_what_their_destructors_free() {
    let place = Place::new();
    let [allocations, reallocs, frees, threads] = own_totals(&place, "threads");
    // The C library allocates for threads, too.
    assert!(allocations >= 8 * TIMES && frees >= 8 * TIMES, "{allocations} {frees}");
    assert_eq!((reallocs, threads), (0, 8));
    let [allocations, _, frees, threads] = own_totals(&place, "destructors");
    assert!(allocations >= 8 && frees >= 8, "{allocations} {frees}");
    assert_eq!(threads, 8, "what a thread does in its destructors is its own");
}

#[test]
fn a_program_that_closes_all_descriptors_is_recorded() {
    assert_eq!(own_totals(&Place::new(), "close"), [TIMES, 0, TIMES, 0]);
}

#[test]
fn a_program_that_empties_its_environment_is_recorded() {
    let [allocations, ..] = own_totals(&Place::new(), "environment");
    assert!(allocations >= TIMES);
}

/// (design/cli-traces.md `.req.kept`)
#[test]
fn what_came_before_a_crash_an_exit_or_a_signal_is_kept() {
    let place = Place::new();
    for what in ["crash", "exit", "signal"] {
        assert_eq!(own_totals(&place, what), [TIMES, 0, TIMES, 0], "{what}");
    }
}

#[test]
fn more_operations_than_the_ring_has_room_for_are_recorded() {
    assert_eq!(own_totals(&Place::new(), "many"), [600 * TIMES, 0, 600 * TIMES, 0]);
}

#[test]
fn a_child_has_a_trace_of_its_own() {
    let place = Place::new();
    place.record_and_compare("fork");
    let traces = place.traces();
    let [parent, child] = &traces[..] else { panic!("{traces:?}") };
    assert_eq!(*parent, place.trace());
    let name = child.file_name().unwrap().to_str().unwrap();
    let process = name.strip_prefix("trace.odd.").unwrap_or_else(|| panic!("{name}"));
    assert!(process.parse::<u32>().is_ok(), "{name}");
    // The inherited object is not its own.
    let [allocations, _, frees, _] = totals(child);
    assert_eq!((allocations, frees), (TIMES, TIMES));
}

#[test]
fn children_are_left_out_if_that_is_asked_for() {
    let place = Place::new();
    let output = place.record(&["--no-children"], "fork");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(place.traces(), [place.trace()]);
    totals(&place.trace());
}

#[test]
fn a_program_that_executes_another_has_two_traces() {
    for options in [&[][..], &["--no-children"]] {
        let place = Place::new();
        let output = place.record(options, "exec");
        assert!(output.status.success() && output.stdout == b"out\n", "{output:?}");
        let traces = place.traces();
        assert_eq!(traces.len(), 2, "{traces:?}");
        for trace in traces {
            assert!(totals(&trace)[0] >= TIMES);
        }
    }
}

/// (design/cli-traces.md `.req.cut`)
#[test]
fn a_trace_that_is_cut_off_is_replayed_up_to_there() {
    let place = Place::new();
    place.record_and_compare("many");
    let whole = fs::read(place.trace()).unwrap();
    fs::write(place.trace(), &whole[..whole.len() / 2]).unwrap();
    let mut command = tripoint();
    command.args(["--json", "replay", "--contents", "--with", "system"]).arg(place.trace());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["operations"].as_u64().unwrap() > 100_000, "{report}");
    assert!(report["cut"].as_str().unwrap().contains("no end"));
    assert_eq!(report["contenders"][0]["differences"], 0);
}

/// With the exit status of `env`, and without a trace.
#[test]
fn what_cannot_be_recorded_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "not a program").unwrap();
    for (program, said, status) in [
        ("no-such-program", "there is no such program", 127),
        ("/dev/null/x", "no such program", 127),
        (text.to_str().unwrap(), "ermission denied", 126),
    ] {
        let mut command = tripoint();
        let output = command.current_dir(&folder).args(["record", "--", program]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(!folder.path().join("tripoint.trace").exists(), "{program}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
}

/// (design/cli-traces.md `.preload.place`)
#[test]
fn a_folder_for_temporary_files_that_nothing_can_be_loaded_from_is_not_used() {
    let place = Place::new();
    fs::create_dir(place.folder.path().join("temporary")).unwrap();
    let recorded = shell(
        &place,
        "unshare -m sh -c 'mount -t tmpfs -o noexec none temporary || exit 99
        TMPDIR=$PWD/temporary $0 record -q -o trace -- $1 pairs' $1 $2",
    );
    if recorded.status.code() != Some(0) && !place.trace().exists() {
        tripoint_oracle::skipped!(
            "nothing can be mounted here: {}",
            String::from_utf8_lossy(&recorded.stderr)
        );
        return;
    }
    assert_eq!((recorded.status.code(), &*recorded.stderr), (Some(0), &b"err\n"[..]), "{recorded:?}");
    assert!(totals(&place.trace())[0] >= TIMES);
}

/// Operators that call `malloc`, and operators that do not (design/cli-traces.md `.operators`).
#[test]
fn operators_of_cpp_are_recorded_once_whatever_they_call() {
    let place = Place::new();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let compile = |options: &[&str], source: &str, to: &str| {
        let mut compiler = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        compiler.current_dir(&place.folder).args(["-std=c++17", "-O1", "-w"]);
        compiler.arg(programs.join(source)).args(["-o", to]).args(options);
        assert!(compiler.status().unwrap().success());
    };
    compile(&["-fPIC", "-shared"], "bump.cc", "libbump.so");
    compile(&[], "objects.cc", "plain");
    compile(&["-L.", "-lbump", "-Wl,-rpath,$ORIGIN"], "objects.cc", "bumped");
    for program in ["plain", "bumped"] {
        let output = shell(&place, &format!("$1 record -q -o trace -- ./{program}"));
        // Exceptions pass through the recorder's operators.
        assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"100\n"[..]), "{output:?}");
        let [allocations, reallocs, frees, _] = totals(&place.trace());
        // The C library has a buffer for standard output, and that of C++ a pool for exceptions.
        assert!((4001..4010).contains(&allocations), "{program}: {allocations}");
        assert_eq!((reallocs, frees), (0, 4001), "{program}");
    }
}

/// A shell, with `tripoint` and the program as its first two arguments, in the folder of the program.
fn shell(place: &Place, script: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.current_dir(place.folder.path()).args(["-c", script, "sh", env!("CARGO_BIN_EXE_tripoint")]);
    shell.arg(place.program()).output().unwrap()
}

#[test]
fn a_program_does_not_run_if_its_trace_cannot_be_written() {
    let place = Place::new();
    for output in ["no/such/folder", "."] {
        let ran = shell(&place, &format!("$1 record -o {output} -- touch ran"));
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        assert!(String::from_utf8(ran.stderr).unwrap().contains(&format!("cannot write {output}")));
        assert!(!place.folder.path().join("ran").exists());
    }
}

#[test]
fn two_recordings_do_not_write_the_same_trace() {
    let place = Place::new();
    // Both have the trace's default name.
    let inner = shell(&place, "$1 record -- sh -c \"$1 record -- $2 pairs\"");
    assert_eq!(inner.status.code(), Some(2), "{inner:?}");
    assert!(String::from_utf8(inner.stderr).unwrap().contains("another recording writes it"));
    assert!(totals(&place.folder.path().join("tripoint.trace"))[0] > 0);
}

#[test]
fn a_trace_that_is_not_replaced_is_kept_or_emptied() {
    let place = Place::new();
    place.record_and_compare("pairs");
    let before = fs::read(place.trace()).unwrap();
    let refused = shell(&place, "$1 record -o trace -- ./trace");
    assert_eq!(refused.status.code(), Some(126), "{refused:?}");
    assert_eq!(fs::read(place.trace()).unwrap(), before, "nothing was run");
    let unrecorded = shell(&place, "$1 record -o trace -- env -u LD_PRELOAD $2");
    assert!(unrecorded.status.success(), "{unrecorded:?}");
    assert_ne!(fs::read(place.trace()).unwrap(), before);
}

/// (design/cli-traces.md `.req.unchanged`)
#[test]
fn a_limit_of_the_size_of_files_ends_neither_the_program_nor_the_recorder() {
    let place = Place::new();
    // Enough for the preloaded library, and not for a ring. The unit of `ulimit` is 512 or 1024 bytes.
    let limited = shell(&place, "ulimit -f 6000; $1 record -o trace -- echo ran");
    assert_eq!((limited.status.code(), &*limited.stdout), (Some(0), &b"ran\n"[..]), "{limited:?}");
    assert!(String::from_utf8(limited.stderr).unwrap().contains("a process was not recorded"));
    let more = shell(&place, "ulimit -f 1; $1 record -o trace -- echo ran");
    assert_eq!(more.status.code(), Some(2), "{more:?}");
    let told = String::from_utf8(more.stderr).unwrap();
    assert!(
        told.contains("put what is preloaded into") && told.contains("size of files (ulimit -f)"),
        "{told}"
    );
}

#[test]
fn a_trace_without_room_is_told_and_changes_the_status_of_success() {
    let place = Place::new();
    let full = shell(&place, "$1 record -o /dev/full -- echo ran");
    assert_eq!((full.status.code(), &*full.stdout), (Some(2), &b"ran\n"[..]), "{full:?}");
    let told = String::from_utf8(full.stderr).unwrap();
    assert!(told.contains("/dev/full: it ends too early: No space left"), "{told}");
    let failed = shell(&place, "$1 record -o /dev/full -- sh -c 'exit 7'");
    assert_eq!(failed.status.code(), Some(7), "the program's: {failed:?}");
}

#[test]
fn limits_and_names_that_end_a_replay_are_told() {
    let place = Place::new();
    place.record_and_compare("pairs");
    let limited = shell(&place, "ulimit -n 5; $1 replay trace --with system");
    assert_eq!(limited.status.code(), Some(2), "{limited:?}");
    let told = String::from_utf8(limited.stderr).unwrap();
    assert!(told.contains("cannot start a process for it") && told.contains("(ulimit -n)"), "{told}");
    let odd = shell(&place, "$1 replay trace --with system --plot trace.jpeg");
    assert_eq!((odd.status.code(), odd.stdout.len()), (Some(2), 0), "{odd:?}");
    assert!(String::from_utf8(odd.stderr).unwrap().contains("neither in .svg nor in .png"));
    let few = shell(&place, "ulimit -f 1; $1 replay trace --with system --plot trace.svg");
    assert_eq!(few.status.code(), Some(2), "an error, not the end by a signal: {few:?}");
    assert!(String::from_utf8(few.stderr).unwrap().contains("(ulimit -f)"));
}

/// A process that never pauses has something to read in its ring all the time.
#[test]
fn signals_are_sent_on_and_ends_noticed_while_a_process_is_busy() {
    let place = Place::new();
    let terminated = shell(&place, r#"$1 record -q -o trace -- sh -c "kill -TERM \$PPID; exec $2 endless""#);
    assert_eq!(terminated.status.code(), Some(143), "{terminated:?}");
    let inner = r#"$0 endless > /dev/null 2>&1 & until ls other.*.$! > /dev/null 2>&1; do sleep 0.01; done; echo $!; exit 6"#;
    let script = format!("child=$($1 record -o other -- sh -c '{inner}' $2); echo $?; kill $child");
    let ended = shell(&place, &script);
    assert_eq!(ended.stdout, b"6\n", "{ended:?}");
    assert!(String::from_utf8(ended.stderr).unwrap().contains("still ran when the command ended"));
}

#[test]
fn a_statically_linked_program_is_refused() {
    let place = Place::new();
    let source = place.folder.path().join("empty.c");
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    let program = place.folder.path().join("static");
    let compiled = Command::new("cc").arg("-static").arg(source).arg("-o").arg(&program).output().unwrap();
    if !compiled.status.success() {
        tripoint_oracle::skipped!("there is no static C library");
        return;
    }
    let output =
        tripoint().args([OsStr::new("record"), OsStr::new("--"), program.as_os_str()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("linked statically"));
}

#[test]
fn nothing_is_left_behind() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let mut command = tripoint();
    command.env("TMPDIR", folder.path()).args(["record", "--quiet", "-o"]).arg(place.trace());
    assert!(command.arg("--").arg(place.program()).output().unwrap().status.success());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn synthesized_traces_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let mut command = tripoint();
    command.args(["synthesize", "--seed", "5", "--objects", "5000", "--threads", "3", "-o"]).arg(&trace);
    let output = command.output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("--seed 5"));
    assert_eq!(totals(&trace)[0], 5000);
    let mut command = tripoint();
    command.args(["replay", "--rounds", "1", "--with", "cache+tlsf,mfs,system"]).arg(&trace);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    for row in ["| cache+tlsf |", "| mfs        |", "| system     |", "| none       |"] {
        assert!(table.contains(row), "{table}");
    }
    assert!(table.contains("of 3 threads, which took turns") && table.contains("\nVerdict: "), "{table}");
    // Every column is explained below its table and in the help, in the same words.
    let help = String::from_utf8(tripoint().args(["replay", "--help"]).output().unwrap().stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let headings = table.lines().filter(|line| line.starts_with("| allocator"));
    let headings: Vec<_> = headings.flat_map(|line| line.split('|').map(str::trim)).collect();
    assert!(headings.len() > 20, "{table}");
    for heading in headings.into_iter().filter(|heading| heading.ends_with(')')) {
        let explained = table.lines().find(|line| line.starts_with(&format!("  {heading}  ")));
        let explained = explained.unwrap_or_else(|| panic!("{heading}: {table}"));
        assert!(help.contains(&explained.split_whitespace().collect::<Vec<_>>().join(" ")), "{explained}");
    }
    // At first the caches have nothing; later they serve most requests (design/cli-traces.md `.fills`).
    let mut command = tripoint();
    command.args(["replay", "--json", "--contents", "--with", "cache+tlsf,tlsf"]).arg(&trace);
    let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let [cached, locked] = [0, 1].map(|index| &report["contenders"][index]["fills"]);
    assert!((1..2500).contains(&cached.as_u64().unwrap()) && locked.is_null(), "{report:#}");
}

/// The first block of a trace is small, because the recorder writes what it has while a program starts. What the replay takes
/// for larger blocks later is not the allocator's (design/cli-traces.md `.footprint`).
#[test]
fn the_memory_of_the_replay_itself_is_not_counted() {
    let place = Place::new();
    place.record_and_compare("many");
    let mut command = tripoint();
    command.args(["--json", "replay", "--contents", "--with", "tlsf"]).arg(place.trace());
    let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    for row in report["contenders"].as_array().unwrap() {
        let samples = row["samples"].as_array().unwrap();
        let most = samples.iter().map(|sample| sample["resident"].as_i64().unwrap()).max().unwrap();
        assert!((1..600_000).contains(&most), "{most} bytes of {} for one object", row["name"]);
    }
}

/// (design/cli-traces.md `.memory`)
#[test]
fn memory_is_taken_for_what_is_live_and_not_for_the_length_of_a_trace() {
    let place = Place::new();
    let synthesized = shell(
        &place,
        "$1 synthesize --seed 1 -o long --objects 150000 &&
        $1 synthesize --seed 1 -o wide --objects 600000 --lifetime 1000000000",
    );
    assert!(synthesized.status.success(), "{synthesized:?}");
    // The steps of the first would take 10 MB, and are read twice; the objects of the second take more than there is.
    let replay = "ulimit -v 60000; $1 --json replay --contents --with system";
    let long = shell(&place, &format!("{replay} long"));
    assert_eq!(long.status.code(), Some(0), "{long:?}");
    let wide = shell(&place, &format!("{replay} wide"));
    assert_eq!(wide.status.code(), Some(2), "{wide:?}");
    let said = String::from_utf8(wide.stderr).unwrap();
    assert!(said.contains("live objects") && said.contains("ulimit"), "{said}");
    let advice = shell(&place, "ulimit -v 60000; $1 advise wide");
    assert_eq!(advice.status.code(), Some(2), "{advice:?}");
}

/// Each byte compared (design/cli-traces.md `.contended`).
/// (design/cli.md `.progress`)
#[test]
fn progress_is_shown_in_a_terminal_and_taken_away_and_nowhere_else() {
    let place = Place::new();
    place.record_and_compare("pairs");
    let replay = "$1 replay trace --with system --rounds 3";
    // `script` runs a command in a terminal of its own, and prints what is on it.
    let shown = shell(
        &place,
        &format!("export one=\"$1\"; script -qefc '{}' typescript", replay.replace("$1", "$one")),
    );
    if shown.status.code() == Some(127) {
        tripoint_oracle::skipped!("there is no script");
        return;
    }
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.success() && text.contains(" % ") && text.contains("(for "), "{text}");
    let (bar, table) = (text.rfind("(for ").unwrap(), text.find("| allocator").unwrap());
    // The line is erased between the last bar and the table.
    assert!(bar < table && text[bar..table].contains("\x1b[2K"), "{text:?}");
    for (options, descriptor) in [("", "2> told"), (" --json", "2>&1")] {
        let apart = shell(&place, &format!("{replay}{options} {descriptor}"));
        assert!(apart.status.success() && !String::from_utf8(apart.stdout).unwrap().contains("(for "));
    }
    // Whole lines, and none at all if it was quick.
    let told = fs::read_to_string(place.folder.path().join("told")).unwrap();
    assert!(told.lines().all(is_progress) && !told.contains('\x1b'), "{told:?}");
}

/// Whether a line says how far a replay is.
fn is_progress(line: &str) -> bool {
    line.starts_with("tripoint: ") && line.contains(" % ") && line.contains("(for ") && line.ends_with(" s)")
}

/// (design/cli.md `.progress`)
#[test]
fn long_work_is_told_in_lines_if_there_is_no_terminal() {
    let place = Place::new();
    let synthesized = shell(&place, "$1 synthesize --seed 3 -o trace --objects 100000");
    assert!(synthesized.status.success(), "{synthesized:?}");
    let mut command = tripoint();
    // More runs than are done in two seconds.
    command.args(["replay", "--rounds", "99", "--with", "system,tlsf"]).arg(place.trace());
    let mut replay = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let read = BufReader::new(replay.stderr.take().unwrap()).read_line(&mut line);
    // The rest is of no interest, or there was nothing before its end.
    let _ = replay.kill();
    replay.wait().unwrap();
    assert!(read.unwrap() > 0 && is_progress(line.trim_end()), "{line:?}");
}

#[test]
fn a_recorded_program_is_replayed_with_all_threads_at_once() {
    let place = Place::new();
    place.record_and_compare("threads");
    let mut command = tripoint();
    command.args(["--json", "replay", "--contended", "--rounds", "1", "--with", "cache+tlsf,mfs,system"]);
    let output = command.arg(place.trace()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["contended"], true);
    for row in report["contenders"].as_array().unwrap() {
        assert!(row["mean"].as_f64().unwrap() > 0.0, "{row}");
    }
}

/// Whether a pause is worth another look: a pause is for the other process, and nothing depends on how long it is.
fn pause(begin: Instant) -> bool {
    std::thread::sleep(core::time::Duration::from_millis(20));
    begin.elapsed().as_secs() < 60
}

/// (design/cli-traces.md `.explained`)
#[test]
fn a_line_names_the_program_and_how_much_of_its_memory_the_trace_explains() {
    let place = Place::new();
    let recorded = shell(&place, "$1 record -o trace -- $2 holds");
    assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
    let told = String::from_utf8(recorded.stderr).unwrap();
    let line = told.lines().find(|line| line.contains("trace: odd, ")).unwrap_or_else(|| panic!("{told}"));
    // It holds 64 MiB that it wrote to, and as much that is a mapping of its own.
    let (_, of) = line.split_once("explains ").unwrap_or_else(|| panic!("{told}"));
    let numbers: Vec<f64> = of.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!((64.0..65.0).contains(&numbers[0]) && (128.0..160.0).contains(&numbers[1]), "{told}");
    assert!(line.contains(" of 1 thread; ") && line.contains(" MiB of memory; exit status: 0"), "{told}");
    let mut command = tripoint();
    let replayed = command.args(["replay", "--contents", "--with", "system"]).arg(place.trace()).output();
    let replayed = String::from_utf8(replayed.unwrap().stdout).unwrap();
    assert!(
        replayed.contains("The trace explains 64.") && replayed.contains(" of 1 thread; at most 64."),
        "{replayed}"
    );
}

/// One file, which refers to no other (design/cli-traces.md `.req.page`, `.page`).
#[test]
fn one_step_records_replays_draws_and_shows_a_page() {
    let place = Place::new();
    let folder = place.folder.path();
    // A desktop whose opener says what it was given.
    let opener = folder.join("xdg-open");
    fs::write(&opener, "#!/bin/sh\necho \"$1\" > opened.new && mv opened.new opened\n").unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let open = "PATH=$PWD:$PATH DISPLAY=:7 WAYLAND_DISPLAY= $1 record --open -o trace -- $2 fork";
    let ran = shell(&place, open);
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(3), &b""[..]), "the program's: {ran:?}");
    assert!(String::from_utf8(ran.stderr).unwrap().contains("tripoint: trace.html\n"));
    let begin = Instant::now();
    while !folder.join("opened").exists() && pause(begin) {}
    assert_eq!(fs::read_to_string(folder.join("opened")).unwrap(), "trace.html\n");

    let page = fs::read_to_string(folder.join("trace.html")).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let elements = || document.descendants().filter(roxmltree::Node::is_element);
    for element in elements() {
        let name = element.tag_name().name();
        assert!(!["script", "link", "img", "iframe", "object", "use", "image"].contains(&name), "{name}");
        for attribute in element.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!["href", "src", "srcset", "data"].contains(&name), "{name}={value}");
            assert!(!value.contains("url(") && !value.contains("://"), "{name}={value}");
        }
    }
    let style = elements().find(|element| element.has_tag_name("style")).unwrap().text().unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
    // Two pictures for each theme; three tables of the replay, and one of the processes.
    let count = |name: &str| elements().filter(|element| element.tag_name().name() == name).count();
    assert_eq!((count("svg"), count("table")), (4, 4), "{page}");
    let text: String = document.descendants().filter_map(|node| node.text()).collect();
    for expected in ["Allocations of odd, ", "Verdict", "cache+tlsf", "explains ", "nothing was wrong"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let processes = elements().filter(|element| element.has_tag_name("td") && element.text() == Some("odd"));
    assert_eq!(processes.count(), 2);

    // The control: nothing is shown without a desktop, and the page is there.
    for file in ["opened", "trace.html"] {
        fs::remove_file(folder.join(file)).unwrap();
    }
    let ran = shell(&place, &open.replace("DISPLAY=:7", "DISPLAY="));
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    assert!(folder.join("trace.html").exists() && !folder.join("opened").exists());
}
