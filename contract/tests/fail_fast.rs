//! Cases in which FailFast ends the process, each in a process of its own.
#![cfg(tripoint_kernel)]

mod common;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::alloc::System;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use common::{Reason, contract, in_child};
use tripoint_contract::{
    Guard, HotThread, NoDetectors, Observation, Policies, Policy, Record, ViolationClass, ViolationSet,
};

/// The system's allocator, which ends the process with a status of its own if a thread
/// allocates that must not.
struct Forbidding;

thread_local! {
    /// Whether this thread must not allocate. The thread that runs the tests may: it goes on
    /// while this one violates the contract.
    static FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

const ALLOCATED: i32 = 77;

// SAFETY: every call is the system's allocator's, or ends the process.
unsafe impl GlobalAlloc for Forbidding {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if FORBIDDEN.get() {
            // SAFETY: ends the process, which needs nothing more.
            unsafe { libc::_exit(ALLOCATED) };
        }
        // SAFETY: the caller keeps to the duties of `GlobalAlloc`, which are
        // those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the duties of `GlobalAlloc`, which are
        // those of the system's allocator.
        unsafe { System.dealloc(object, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Forbidding = Forbidding;

/// Arms the calling thread, prints that, violates the contract, and prints that,
/// too.
fn violate(policies: Policies) {
    let contract = contract();
    let thread = HotThread { policies, ..HotThread::new("hot") };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    // The harness has begun the line with the test's name.
    println!("\narmed");
    guard.check();
    println!("clean");
    guard.observe(Observation::new(ViolationClass::Growth, 4_096));
    println!("violated");
    std::io::stdout().flush().unwrap();
    guard.check();
    println!("went on");
}

fn lines(bytes: &[u8], of: &[&str]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter(|line| of.contains(line)).map(str::to_owned).collect()
}

const SAID: [&str; 4] = ["armed", "clean", "violated", "went on"];

/// The line that FailFast prints, and what follows it on standard error.
fn last_words(child: &Output) -> String {
    let text = String::from_utf8_lossy(&child.stderr).into_owned();
    text.lines().find(|line| line.starts_with("tripoint contract violated")).unwrap_or("").to_owned()
}

/// By default the process prints one line and aborts, at the check after the violation. What
/// was written before is there.
#[test]
fn by_default_a_violation_says_one_line_and_aborts() {
    let Some(child) = in_child("by_default_a_violation_says_one_line_and_aborts") else {
        return violate(Policies::all(Policy::FailFast));
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID[..3]);
    let line = last_words(&child);
    let start = "tripoint contract violated: growth x1, 4096 bytes, on hot in SteadyState; lines by: addr2line -Cfipe ";
    assert!(line.starts_with(start), "{child:?}");
    // The line ends in a command: it says where the violation was.
    if Command::new("addr2line").arg("-v").output().is_err() {
        tripoint_oracle::skipped!("there is no addr2line here");
        return;
    }
    let command = &line[start.len() - "addr2line -Cfipe ".len()..];
    let found = Command::new("sh").args(["-c", command]).output().unwrap();
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.contains("fail_fast::violate"), "{found}");
}

type Bare = Guard<Reason, NoDetectors>;

/// The guard that a signal handler checks.
static GUARD: AtomicPtr<Bare> = AtomicPtr::new(core::ptr::null_mut());

extern "C" fn check_in_handler(_signal: i32) {
    FORBIDDEN.set(true);
    // SAFETY: the guard of the thread that was interrupted, which waits for this.
    unsafe { &*GUARD.load(Ordering::Relaxed) }.check();
}

/// Nothing is allocated and no lock is taken: the line is printed in a signal handler, on a
/// thread that holds the lock of standard error.
#[test]
fn the_line_is_said_in_a_signal_handler_without_allocating() {
    let Some(child) = in_child("the_line_is_said_in_a_signal_handler_without_allocating") else {
        let thread = HotThread { policies: Policies::all(Policy::FailFast), ..HotThread::new("hot") };
        let mut guard: Bare = contract().register_with(thread, NoDetectors).unwrap();
        guard.arm();
        guard.observe(Observation::new(ViolationClass::Alloc, 24));
        GUARD.store(&raw mut guard, Ordering::Relaxed);
        let _lock = std::io::stderr().lock();
        // SAFETY: the handler calls what may be called in one, which is what is tested.
        unsafe { libc::signal(libc::SIGUSR1, check_in_handler as extern "C" fn(i32) as usize) };
        // SAFETY: a signal to the calling thread.
        unsafe { libc::raise(libc::SIGUSR1) };
        return;
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    assert!(last_words(&child).starts_with("tripoint contract violated: alloc x1, 24 bytes, on hot in Init"));
}

/// The control: in that handler, an allocation ends the process with the other status.
#[test]
fn an_allocation_in_the_handler_would_show() {
    let Some(child) = in_child("an_allocation_in_the_handler_would_show") else {
        FORBIDDEN.set(true);
        drop(core::hint::black_box(Box::new(7)));
        return;
    };
    assert_eq!(child.status.code(), Some(ALLOCATED), "{child:?}");
}

/// If the line cannot be printed, the process still ends.
#[test]
fn a_closed_standard_error_changes_no_end() {
    let Some(child) = in_child("a_closed_standard_error_changes_no_end") else {
        // SAFETY: a descriptor that this process of ours writes nothing more to.
        unsafe { libc::close(libc::STDERR_FILENO) };
        return violate(Policies::all(Policy::FailFast));
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    assert_eq!(last_words(&child), "");
}

/// With symbols: the line of the violation, and the stack.
#[cfg(feature = "symbols")]
#[test]
fn the_report_with_symbols_names_the_line() {
    let Some(child) = in_child("the_report_with_symbols_names_the_line") else {
        let report = tripoint_contract::Symbols::report_and_abort;
        return violate(Policies::all(Policy::FailFast).with_fail_fast(report));
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    let told = String::from_utf8_lossy(&child.stderr).into_owned();
    let start = "tripoint contract violated: growth x1, 4096 bytes, on hot in SteadyState\n  in ";
    let place = told.split_once(start).and_then(|(_, rest)| rest.lines().next());
    // Tables of lines name a function without its crate.
    assert!(
        place.is_some_and(|place| place.contains("violate at ") && place.contains("fail_fast.rs:")),
        "{told}"
    );
}

/// The environment sets the policy, and a word that is no policy is an error.
#[test]
fn the_environment_says_the_policy() {
    const CHILD: &str = "TRIPOINT_TEST_CHILD";
    const TEST: &str = "the_environment_says_the_policy";
    if std::env::var_os(CHILD).is_some() {
        match Policies::all(Policy::Quarantine).from_environment() {
            Ok(policies) => violate(policies),
            Err(error) => println!("\n{error}"),
        }
        return;
    }
    let run = |policy: Option<&str>| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", TEST, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
        match policy {
            Some(policy) => child.env(Policies::VARIABLE, policy),
            None => child.env_remove(Policies::VARIABLE),
        };
        child.output().unwrap()
    };
    for (policy, aborts) in
        [(None, false), (Some("failfast"), true), (Some("alarmonce"), false), (Some("growth=failfast"), true)]
    {
        let child = run(policy);
        assert_eq!(child.status.signal() == Some(libc::SIGABRT), aborts, "{policy:?}: {child:?}");
    }
    let refused = run(Some("fail-fast"));
    let told = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(told.contains("`fail-fast` is not a policy") && !told.contains("armed"), "{told}");
}

/// A program that wants a message says it itself, from the record, and aborts.
#[test]
fn a_message_of_ones_own_is_there_before_the_abort() {
    let Some(child) = in_child("a_message_of_ones_own_is_there_before_the_abort") else {
        fn tell(alarm: &Record) {
            eprintln!("{} x{}, {} bytes", alarm.class, alarm.count, alarm.bytes);
            std::process::abort();
        }
        return violate(Policies::all(Policy::FailFast).with_fail_fast(tell));
    };
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID[..3]);
    assert_eq!(lines(&child.stderr, &["growth x1, 4096 bytes"]).len(), 1, "{child:?}");
}

/// The control: the same violation under another policy ends nothing.
#[test]
fn in_quarantine_the_same_violation_ends_nothing() {
    let Some(child) = in_child("in_quarantine_the_same_violation_ends_nothing") else {
        return violate(Policies::all(Policy::Quarantine));
    };
    assert!(child.status.success(), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID);
}

/// Only the classes under FailFast are fatal.
#[test]
fn another_class_under_fail_fast_ends_nothing() {
    let policies = Policies::all(Policy::FailFast).with(ViolationSet::GROWTH, Policy::Quarantine);
    let Some(child) = in_child("another_class_under_fail_fast_ends_nothing") else {
        return violate(policies);
    };
    assert!(child.status.success(), "{child:?}");
    assert_eq!(lines(&child.stdout, &SAID), SAID);
}
