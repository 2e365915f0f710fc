//! The soak, and the trend over its rounds (design/gates.md `.soak`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tripoint_oracle::wait_until;

use crate::programs::{Running, pause, stand_in};
use crate::{assert_tells_of_a_burst, command_of, entries, gate, has_python, read, scratch, text};

/// `.soak`. Growth of resident memory within seconds says nothing, so it is left out.
#[test]
fn soak_fails_at_a_burst() {
    if !has_python() {
        return;
    }
    let arguments = ["--seconds", "2", "--seed", "41", "--", "--warmup", "500", "--inject", "burst=1000"];
    let output = gate("soak", "soak-burst", &arguments);
    assert!(text(&output).contains("\nFAILED  round 1: "), "{output:?}");
    assert_tells_of_a_burst(&output, 1_000);
}

/// What the real book must not tell of. Tail latency and resident memory of seconds say nothing, so they are left out.
const FAULTS: [&str; 7] =
    ["exit status", "alarms:", "violations:", "records lost:", "calls:", "trace:", "steady part:"];

/// How many pages the kernel has moved; none if it does not count them.
fn pages_moved() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("pgmigrate_success ")?.parse().ok())
}

/// What a run returns, which also says whether it holds. If it does not and the kernel moved pages meanwhile, whose next
/// touch is a fault (design/order-book.md, Limits), it runs again, twice at most.
fn unmoved<T>(mut run: impl FnMut() -> (T, bool)) -> T {
    for left in (0..3).rev() {
        let before = pages_moved();
        let (ran, holds) = run();
        if holds || left == 0 || pages_moved() == before {
            return ran;
        }
        println!("run again: the kernel moved pages, {before:?} until then and {:?} now", pages_moved());
    }
    unreachable!("the last run returns")
}

/// `.soak.live`, `.soak.rotate`, of the real book.
#[test]
fn rounds_differ_by_their_seed_and_traces_rotate() {
    if !has_python() {
        return;
    }
    let arguments =
        ["--seconds", "4", "--round", "2", "--rotate", "1", "--seed", "41", "--", "--warmup", "500"];
    let (reports, told) = unmoved(|| {
        let reports = scratch("soak");
        let told = text(&command_of("soak", &reports).args(arguments).output().unwrap());
        let holds = FAULTS.iter().all(|fault| !told.contains(fault));
        ((reports, told), holds)
    });
    assert!(told.contains("round 1: ") && told.contains("round 2: "), "{told}");
    for line in told.lines() {
        assert!(FAULTS.iter().all(|fault| !line.contains(fault)), "{line}: see {reports:?}");
    }
    let soak = only_soak(&reports);
    assert!(told.contains(&format!("{}: seed 41, round 1 of 2", soak.display())), "{told}");
    let trend = read_json(&soak.join("trend.json"));
    let seeds: Vec<_> = trend["rounds"].as_array().unwrap().iter().map(|round| &round["seed"]).collect();
    assert_eq!(seeds, [41, 42]);
    for round in rounds(&soak) {
        assert!(round.join("trace-2").exists(), "{:?}", entries(&round));
        let report = read_json(&round.join("report.json"));
        assert!(report["steady_seconds"].as_f64() >= Some(2.0), "{report:#}");
    }
}

fn only_soak(reports: &Path) -> PathBuf {
    let [soak] = &entries(&reports.join("soak"))[..] else { panic!("one soak") };
    soak.clone()
}

/// The folders of the rounds.
fn rounds(soak: &Path) -> Vec<PathBuf> {
    entries(soak).into_iter().filter(|path| path.is_dir()).collect()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// A soak of programs that stand for the order book and the command.
fn faked(reports: &Path, arguments: &[&str]) -> Command {
    let mut command = command_of("soak", reports);
    command.env("BOOK", stand_in("fake-book")).env("TRIPOINT", stand_in("fake-tripoint")).args(arguments);
    command
}

/// `.req.control`: memory that grows within a round is found; the same that does not is not.
#[test]
fn memory_that_grows_in_a_round_fails() {
    if !has_python() {
        return;
    }
    let run = |name: &str, fake: &str| {
        faked(&scratch(name), &["--seconds", "2"]).env("FAKE", fake).output().unwrap()
    };
    let flat = run("soak-flat", "");
    assert!(flat.status.success(), "{flat:?}");
    let grows = run("soak-grows", "grows");
    assert_eq!(grows.status.code(), Some(1), "{grows:?}");
    assert!(text(&grows).contains("\nresident memory grew from "), "{grows:?}");
    assert_eq!(text(&grows).lines().nth(2).map(|line| line.starts_with("resident memory")), Some(true));
}

/// `.soak.resume`.
#[test]
fn a_soak_that_was_interrupted_goes_on_with_its_round() {
    if !has_python() {
        return;
    }
    let reports = scratch("soak-resumed");
    let hold = reports.join("hold");
    std::fs::write(&hold, "").unwrap();
    let start = |arguments: &[&str]| {
        let mut command = faked(&reports, arguments);
        command.env("FAKE_HELD", "8").env("FAKE_HOLD", &hold).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    };
    let three = ["--seconds", "3", "--round", "1"];
    let mut soak = start(&[&three[..], &["--seed", "7"]].concat());
    let state = || {
        let soak = entries(&reports.join("soak")).pop()?.join("state.json");
        serde_json::from_str::<Value>(&std::fs::read_to_string(soak).ok()?).ok()
    };
    // The second round cannot end before the file is gone.
    wait_until(|| {
        pause();
        reports.join("soak").exists() && state().is_some_and(|state| state["rounds"][0] != Value::Null)
    });
    let interrupt = Command::new("kill").args(["-TERM", &soak.0.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(soak.0.wait().unwrap().code(), Some(130));
    assert_eq!(state().unwrap()["rounds"].as_array().unwrap().len(), 1);
    std::fs::remove_file(&hold).unwrap();

    // Not one with other settings.
    for others in [&["--seconds", "4", "--round", "1"][..], &[&three[..], &["--seed", "9"]].concat()] {
        let refused = faked(&reports, others).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(
            told.contains("has done 1 of 3 rounds with other settings") && told.contains("--anew"),
            "{told}"
        );
    }
    // Nor with another baseline or another program.
    let (baseline, other_book) = (reports.join("soak-baseline.json"), reports.join("other-book"));
    let was = read(&baseline);
    std::fs::write(&baseline, format!("{was} ")).unwrap();
    std::fs::copy(stand_in("fake-book"), &other_book).unwrap();
    std::fs::write(&other_book, format!("{}\n# Another.\n", read(&other_book))).unwrap();
    let refused = faked(&reports, &three).env("BOOK", &other_book).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("settings: program ") && told.contains(", baseline "), "{told}");
    std::fs::write(&baseline, was).unwrap();
    let resumed = faked(&reports, &three).output().unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    assert!(text(&resumed).lines().next().unwrap().ends_with(": seed 7, round 2 of 3"), "{resumed:?}");
    let state = state().unwrap();
    let seeds: Vec<_> = state["rounds"].as_array().unwrap().iter().map(|round| &round["seed"]).collect();
    assert_eq!(seeds, [7, 8, 9]);

    // What is over does not go on, and the next one is compared with it.
    let next = faked(&reports, &["--seconds", "1"]).output().unwrap();
    assert!(text(&next).lines().next().unwrap().ends_with("round 1 of 1"), "{next:?}");
    let soaks = entries(&reports.join("soak"));
    let trend = read_json(&soaks[1].join("trend.json"));
    assert_eq!(trend["amnesties"]["history"]["mean_before"], 3.0, "{trend:#}");
}

/// `.soak.resume`: one process at a time plays a soak, until its terminal closes; and a state that was cut off does not
/// keep another soak from beginning.
#[test]
fn a_soak_is_held_while_it_runs() {
    if !has_python() {
        return;
    }
    let reports = scratch("soak-held");
    let hold = reports.join("hold");
    std::fs::write(&hold, "").unwrap();
    let arguments = ["--seconds", "1", "--seed", "7"];
    let mut soak = faked(&reports, &arguments);
    soak.env("FAKE_HELD", "7").env("FAKE_HOLD", &hold).stdout(Stdio::null()).stderr(Stdio::null());
    let mut soak = Running(soak.spawn().unwrap());
    let folder = || entries(&reports.join("soak")).pop();
    wait_until(|| {
        pause();
        reports.join("soak").exists() && folder().is_some_and(|folder| folder.join("trend.json").exists())
    });
    let second = faked(&reports, &arguments).output().unwrap();
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains(" is running. "), "{second:?}");
    // Tests that nohup starts ignore a hangup.
    let ended = Command::new("kill").args(["-TERM", &soak.0.id().to_string()]).status();
    assert!(ended.unwrap().success());
    assert_eq!(soak.0.wait().unwrap().code(), Some(130));

    std::fs::write(folder().unwrap().join("state.json"), "{").unwrap();
    let cut = faked(&reports, &arguments).output().unwrap();
    assert_eq!(cut.status.code(), Some(2), "{cut:?}");
    assert!(String::from_utf8_lossy(&cut.stderr).contains("--anew"), "{cut:?}");
    let anew = faked(&reports, &[&arguments[..], &["--anew"]].concat()).output().unwrap();
    assert!(anew.status.success(), "{anew:?}");
    assert!(
        String::from_utf8_lossy(&anew.stderr).starts_with("not compared with the soak before: "),
        "{anew:?}"
    );
}

/// `.soak.rotate`: a trace that shows nothing is excused only if it ends before the steady state, and comes before all
/// that show it.
#[test]
fn only_first_traces_may_end_before_the_steady_state() {
    if !has_python() {
        return;
    }
    for (found, fault) in [("before", None), ("broken", Some("trace-1")), ("within before", Some("trace-2"))]
    {
        let reports = scratch("soak-before");
        let mut soak = faked(&reports, &["--seconds", "4", "--rotate", "1"]);
        let told = text(&soak.env("FAKE_FOUND", found).output().unwrap());
        assert_eq!(told.contains("FAILED  round 1: "), fault.is_some(), "{found}: {told}");
        if let Some(trace) = fault {
            assert!(told.contains(&format!("\ntrace: {trace} does not show the steady state: ")), "{told}");
        }
    }
}

/// `.soak`: rounds are whole, and together not shorter than what was asked for; the baseline's folder has to be there.
#[test]
fn a_soak_is_as_long_as_asked_for() {
    if !has_python() {
        return;
    }
    let told = text(&faked(&scratch("soak-whole"), &["--seconds", "3", "--round", "2"]).output().unwrap());
    assert!(told.lines().next().unwrap().ends_with("round 1 of 2"), "{told}");
    let elsewhere = ["--seconds", "1", "--baseline", "/nowhere/at/all.json"];
    let nowhere = faked(&scratch("soak-nowhere"), &elsewhere).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("there is no such folder"), "{nowhere:?}");
}

/// A round as a state has it: its ceiling in KiB, p99.9 in ns, and how often memory was got in a quiet moment.
fn round(number: usize, most: u64, p999: u64, history: u64) -> Value {
    json!({
        "folder": "", "seed": number, "faults": [], "steady_seconds": 600.1, "steady_messages": 5_000,
        "latency_ns": { "p999": p999, "p9999": 10 * p999 }, "baseline_ns": { "p999": 1_000, "p9999": 10_000 },
        "amnesties": { "history": history },
        "resident_kib": { "first": 20_000, "most": most },
    })
}

/// Has the trend over these rounds, which are all.
fn trend(name: &str, rounds: &[Value], arguments: &[&str]) -> Output {
    trend_of(name, rounds, rounds.len(), arguments)
}

/// Has the trend over these rounds of that many.
fn trend_of(name: &str, rounds: &[Value], all: usize, arguments: &[&str]) -> Output {
    let soak = scratch(name);
    let settings = json!({ "rounds": all, "round": 600, "rotate": 600, "book": [] });
    let state = json!({ "seed": 7, "settings": settings, "rounds": rounds });
    std::fs::write(soak.join("state.json"), state.to_string()).unwrap();
    gate("trend", &format!("{name}-reports"), &[&[soak.to_str().unwrap()], arguments].concat())
}

/// `.soak.trend`: rounds each of which holds, with ceilings that creep up.
#[test]
fn memory_that_grows_over_the_rounds_fails() {
    if !has_python() {
        return;
    }
    let of = |name: &str, ceilings: &[u64]| {
        let rounds: Vec<_> =
            (1..).zip(ceilings).map(|(number, &most)| round(number, most, 1_000, 0)).collect();
        trend(name, &rounds, &[])
    };
    // Up and down, and one that is high by chance.
    for flat in
        [&[20_000, 20_300, 19_900, 20_350, 20_100, 20_380][..], &[20_000, 20_000, 25_000, 20_000], &[1]]
    {
        let output = of("trend-flat", flat);
        assert!(output.status.success(), "{flat:?}: {output:?}");
    }
    // One percent a round.
    let grows = of("trend-grows", &[20_000, 20_200, 20_400, 20_600, 20_800, 21_000]);
    assert_eq!(grows.status.code(), Some(1), "{grows:?}");
    let told = text(&grows);
    assert!(told.ends_with("\nresident memory grew over the rounds, from 20200 to 20800 KiB\n"), "{told}");
}

/// `.soak.trend`: the figures, as text and as JSON.
#[test]
fn the_trend_has_latencies_against_the_baseline_and_amnesties_by_reason() {
    if !has_python() {
        return;
    }
    let mut rounds = [round(1, 20_000, 1_000, 4), round(2, 20_010, 1_500, 0), round(3, 20_000, 3_000, 5)];
    // Each is compared with its own.
    rounds[1]["baseline_ns"]["p999"] = json!(3_000);
    let told = text(&trend("trend", &rounds, &[]));
    let row = |first: &str| {
        let line = told.lines().find(|line| line.trim_start().starts_with(first));
        line.unwrap_or_else(|| panic!("{told}")).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(told.starts_with("soak with seed 7: 3 of 3 rounds of 600 s, 3 held\n"), "{told}");
    let third = ["3", "yes", "3", "600.1", "5000", "20000", "20000", "3000", "3.00", "30000", "3.00"];
    assert_eq!(row("3 "), third);
    assert_eq!(row("history"), ["history", "9", "5", "3.0", "-"]);
    let json: Value = serde_json::from_slice(&trend("trend", &rounds, &["--json"]).stdout).unwrap();
    assert_eq!(json["rounds"][1]["latency_ns"]["p999"], json!({ "ns": 1_500, "of_baseline": 0.5 }));
    assert_eq!(json["resident"], json!({ "first_kib": 20_000, "last_kib": 20_000, "grew": false }));
    // A round without a report, and so without figures.
    let mut lost = json!({ "folder": "", "seed": 2, "faults": ["exit status 1"] });
    let figures =
        ["steady_seconds", "steady_messages", "latency_ns", "baseline_ns", "amnesties", "resident_kib"];
    figures.iter().for_each(|&figure| lost[figure] = Value::Null);
    let failed = trend("trend-failed", &[round(1, 20_000, 1_000, 1), lost], &[]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(text(&failed).contains("2 of 2 rounds of 600 s, 1 held\n"), "{failed:?}");
}

/// `.soak.trend`: what is not over did not pass, and what is no state is refused.
#[test]
fn a_trend_without_all_rounds_does_not_pass() {
    if !has_python() {
        return;
    }
    let sound = round(1, 20_000, 1_000, 1);
    let mut without_ceiling = sound.clone();
    without_ceiling.as_object_mut().unwrap().remove("resident_kib").unwrap();
    let mut failed = sound.clone();
    failed["faults"] = json!(["exit status 1"]);
    for (rounds, all, status) in [
        (&[][..], 0, 2),
        (&[], 3, 2),
        (core::slice::from_ref(&sound), 2, 2),
        (&[failed], 2, 1),
        (&[without_ceiling], 1, 2),
        (core::slice::from_ref(&sound), 1, 0),
    ] {
        let output = trend_of("trend-unfinished", rounds, all, &[]);
        assert_eq!(output.status.code(), Some(status), "{rounds:?} of {all}: {output:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("Traceback"), "{output:?}");
    }
}
