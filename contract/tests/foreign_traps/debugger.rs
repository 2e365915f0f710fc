//! A debugger that passes traps on.

use crate::common::contract;
use crate::{TRAPS, hot_with, on_hot_thread, use_fresh_page};
use tripoint_contract::{DetectorSet, ViolationClass};

/// A debugger that passes the signal on drops what it carries: the detectors that need this
/// are not live, and the process goes on.
#[test]
fn under_a_debugger_that_passes_traps_the_process_goes_on() {
    const NAME: &str = "debugger::under_a_debugger_that_passes_traps_the_process_goes_on";
    const DEBUGGED: &str = "TRIPOINT_DEBUGGED_CHILD";
    if std::env::var_os(DEBUGGED).is_some() {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot_with(contract, TRAPS | DetectorSet::FAULT_POLL);
            let before = guard.slot().tally(ViolationClass::MinorFault).count;
            use_fresh_page();
            guard.poll();
            assert!(guard.slot().tally(ViolationClass::MinorFault).count > before);
            println!("went on");
        });
    }
    let mut debugger = std::process::Command::new("gdb");
    debugger.args(["-nx", "-batch", "-ex", "handle SIGTRAP nostop noprint pass", "-ex", "run", "--args"]);
    debugger.arg(std::env::current_exe().unwrap()).args(["--exact", NAME, "--nocapture"]).env(DEBUGGED, "1");
    let Ok(output) = debugger.output() else {
        tripoint_oracle::skipped!("no debugger here");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains("running 1 test") {
        tripoint_oracle::skipped!("the debugger starts nothing here: {output:?}");
        return;
    }
    assert!(said.contains("went on") && said.contains("exited normally"), "{output:?}");
}
