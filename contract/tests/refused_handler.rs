//! A sandbox in which no program may handle signals. The handler is installed once in a
//! process, so this process has no other test.
#![cfg(tripoint_kernel)]

mod common;
#[path = "common/refuse.rs"]
mod refuse;

use core::hint::black_box;
use std::thread;

use common::{contract, records};
use tripoint_contract::{DetectorSet, HotThread, Policies, Policy, Report, ViolationClass, ViolationSet};

/// Then no thread is sent a trap, because a trap would end the process.
/// (design/contract.md `.req.live`)
#[test]
fn without_a_handler_faults_are_polled_and_calls_have_no_site() {
    let wanted = DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL | DetectorSet::MEMORY_CALLS;
    let hot = thread::spawn(move || {
        refuse::refuse(libc::SYS_rt_sigaction);
        let contract = contract();
        let policies = Policies::all(Policy::Quarantine);
        let (classes, detectors) = (ViolationSet::MEMORY_CALL, wanted);
        let guard =
            contract.register(HotThread { classes, detectors, policies, ..HotThread::new("hot") }).unwrap();
        guard.arm();
        let live = guard.slot().live();
        assert!(!live.contains(DetectorSet::FAULT_TRAP));
        assert_eq!(Report::new(contract).missing(), wanted.difference(live));
        if !live.contains(DetectorSet::MEMORY_CALLS) {
            tripoint_oracle::skipped!("filters are refused here");
            return;
        }
        // Large enough that the allocator maps it.
        drop(black_box(vec![1_u8; 64 << 20]));
        guard.check();
        let calls: Vec<_> = records(contract)
            .into_iter()
            .filter(|record| record.class == ViolationClass::MemoryCall)
            .collect();
        assert!(calls.len() >= 2);
        assert!(calls.iter().all(|call| call.site.frames().len() <= 1), "no thread was asked where it was");
    });
    hot.join().unwrap();
}
