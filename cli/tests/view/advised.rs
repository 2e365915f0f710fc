//! The program that `tripoint advise --rust` writes (design/cli-traces.md `.advise.rust`).

use std::path::Path;
use std::process::Command;

use crate::outside::OUTSIDE;
use crate::recorded::Recorded;
use crate::run::{Ran, run};

/// A trace most of whose objects have one size.
fn synthesize(trace: &Path) {
    let mut synthesize = Command::new(env!("CARGO_BIN_EXE_tripoint"));
    synthesize.args([
        "synthesize",
        "--seed",
        "22",
        "--objects",
        "5000",
        "--smallest",
        "40",
        "--largest",
        "40",
    ]);
    assert!(synthesize.arg("-o").arg(trace).output().unwrap().status.success());
}

/// What `--rust` says of a trace, and what `--json` does.
fn advise() -> (String, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("app.trace");
    synthesize(&trace);
    let of = |option| -> Ran {
        let ran = run(&["advise", option], &trace);
        assert_eq!(ran.status, Some(0), "{}", ran.err);
        ran
    };
    (of("--rust").out, of("--json").json())
}

/// The program.
pub(crate) fn advised() -> String {
    advise().0
}

#[test]
fn the_program_that_is_advised_compiles_and_runs() {
    let ran = Command::new(OUTSIDE.join("advised")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

/// The numbers are those of the advice.
#[test]
fn the_program_has_what_was_advised() {
    let (program, advice) = advise();
    let program = program.replace('_', "");
    let number = |of: &serde_json::Value| of.as_u64().unwrap();
    for expected in [
        format!("const COMMITLIMIT: usize = {} + ", number(&advice["commit_limit"])),
        format!("const EXTENT: usize = {};", number(&advice["extend"])),
        "Mfs::create(&arena, UnitOf::<[u64; 6]>::new()".to_owned(),
    ] {
        assert!(program.contains(&expected), "{expected}: {program}");
    }
    let classes = advice["classes"].as_array().unwrap();
    assert!(!classes.is_empty());
    for class in classes {
        let (size, count) = (number(&class["size"]), number(&class["count"]));
        assert!(program.contains(&format!("CacheClass {{ size: {size}, count: {count} }},")), "{program}");
    }
}

/// Marks of arenas and pools are no advice for a program.
#[test]
fn telemetry_without_objects_has_no_program() {
    let recorded = Recorded::empty();
    let ran = run(&["advise", "--rust"], &recorded.path());
    assert_eq!((ran.status, &*ran.out), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains("LoggedStore"), "{}", ran.err);
}
