//! The order book under limits of address space, from far too little to enough: it
//! ends with one sentence and status 1, or works; it never panics, aborts, hangs or
//! dies of a signal (design/order-book.md `.req.lost`, design/arena-vm.md `.req.exact`).
#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// The program, built as the tests are.
const PROGRAM: &str = env!("CARGO_BIN_EXE_order-book");

const MIB: u64 = 1 << 20;

/// Runs the program with at most `limit` bytes of a resource.
fn run_within(
    resource: libc::__rlimit_resource_t,
    limit: u64,
    arguments: &[&str],
) -> std::io::Result<Output> {
    let mut command = Command::new(PROGRAM);
    let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    let set_limit = move || {
        // SAFETY: the limits are valid to read.
        match unsafe { libc::setrlimit(resource, &raw const limits) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec it makes one system call, and allocates nothing.
    unsafe { command.pre_exec(set_limit) };
    command.args(arguments).output()
}

/// Whether a process with this limit comes as far as the program: below, the loader
/// or the kernel ends it.
fn starts_within(limit: u64) -> bool {
    run_within(libc::RLIMIT_AS, limit, &["--help"]).is_ok_and(|output| output.status.success())
}

/// Runs it, checks how it ended, and returns whether it succeeded.
fn ends_well_within(limit: u64) -> bool {
    // An alarm, so that the report has a place to look up: symbols need the most
    // memory.
    let arguments = [
        ["--messages", "3000"],
        ["--warmup", "1000"],
        ["--passes", "4"],
        ["--levels", "8192"],
        ["--inject", "alloc"],
        ["--policy", "quarantine"],
    ];
    let arguments = arguments.as_flattened();
    let output = run_within(libc::RLIMIT_AS, limit, arguments).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => assert!(stderr.is_empty(), "{limit}: {stderr}"),
        Some(1) => {
            assert_eq!(stderr.lines().count(), 1, "{limit}: {stderr}");
            assert!(stderr.starts_with("order-book: ") && !stderr.contains("panicked"), "{limit}: {stderr}");
        }
        _ => panic!("{limit}: {output:?}"),
    }
    output.status.success()
}

#[test]
fn too_little_address_space_is_a_sentence_and_enough_is_enough() {
    let mut outcomes = Vec::new();
    // In small steps where the process itself begins to fit, and where the smallest
    // arena does.
    let limits = (6..32).step_by(2).chain((32..190).step_by(16)).chain((190..260).step_by(5));
    let limits = limits.chain((260..4096).step_by(320)).map(|size: u64| size * MIB);
    for limit in limits.skip_while(|&limit| !starts_within(limit)) {
        outcomes.push(ends_well_within(limit));
    }
    assert_eq!(outcomes.first(), Some(&false), "the least is too little");
    assert_eq!(outcomes.last(), Some(&true), "the most is enough");
    let failed = outcomes.iter().filter(|well| !**well).count();
    println!("{} limits: {failed} refused, {} served", outcomes.len(), outcomes.len() - failed);
}

/// Private memory also counts as data, whatever the limit on address space is: the sentence
/// names both limits (design/order-book.md `.headroom`).
#[test]
fn a_limit_of_data_is_named() {
    for limit in [50 * MIB, 100 * MIB] {
        let output = run_within(libc::RLIMIT_DATA, limit, &["--messages", "3000"]).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{limit}: {output:?}");
        assert!(stderr.lines().count() == 1 && stderr.contains("ulimit -d"), "{limit}: {stderr}");
    }
}
