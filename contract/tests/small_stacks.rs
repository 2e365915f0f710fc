//! Hot threads with a small stack: registration touches no more of it than there is
//! (design/contract.md `.fault.stack`). Each runs in a process of its own, which would end.
#![cfg(tripoint_kernel)]

mod common;

use core::ptr;
use std::thread;

use common::{Reason, armed, contract, in_child, of_kind, records};
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors};
use tripoint_contract::mock::{Calls, Failing};
use tripoint_contract::{
    Contract, DetectorSet, Guard, HotThread, Policies, Policy, RecordKind, ViolationClass, ViolationSet,
};

type Watched = &'static Contract<Reason, 4>;

const DETECTORS: DetectorSet =
    DetectorSet::FAULT_TRAP.union(DetectorSet::MEMORY_CALLS).union(DetectorSet::FAULT_POLL);

fn hot() -> HotThread<'static> {
    let classes = ViolationSet::MINOR_FAULT | ViolationSet::MEMORY_CALL;
    HotThread {
        classes,
        detectors: DETECTORS,
        policies: Policies::all(Policy::Quarantine),
        ..HotThread::new("hot")
    }
}

/// Maps a page and touches it; both are caught with their place.
fn be_caught(contract: Watched, guard: &Guard<Reason>) {
    if !guard.slot().live().contains(DETECTORS) {
        tripoint_oracle::skipped!("{:?} is refused here", DETECTORS.difference(guard.slot().live()));
        return;
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses; the first byte.
    unsafe {
        let page = libc::mmap(ptr::null_mut(), 4096, access, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<u8>().write_volatile(1);
    }
    guard.check();
    let caught = of_kind(&records(contract), RecordKind::Violation);
    for class in [ViolationClass::MemoryCall, ViolationClass::MinorFault] {
        let found = caught.iter().any(|record| record.class == class && record.site.frames().len() > 1);
        assert!(found, "{class}: {caught:?}");
    }
}

fn on_stack_of(size: usize, test: fn(Watched)) {
    // Made on this thread, because it is larger than the small stack.
    let contract = contract();
    thread::Builder::new().stack_size(size).spawn(move || test(contract)).unwrap().join().unwrap();
}

/// As small as the documents say.
#[test]
fn a_thread_with_little_stack_is_watched_in_full() {
    let Some(child) = in_child("a_thread_with_little_stack_is_watched_in_full") else {
        return on_stack_of(32 << 10, |contract| {
            be_caught(contract, &armed(contract, hot()));
        });
    };
    assert!(child.status.success(), "{child:?}");
}

/// Of an unknown stack, nothing is touched.
#[test]
fn a_stack_that_is_not_known_is_left_alone() {
    let Some(child) = in_child("a_stack_that_is_not_known_is_left_alone") else {
        return on_stack_of(48 << 10, |contract| {
            let detectors = ThreadDetectors::new(Failing::new(LinuxKernel, Calls::STACK_ROOM), DETECTORS);
            let guard = contract.register_with(hot(), detectors).unwrap();
            guard.arm();
            assert!(guard.slot().live().contains(DetectorSet::FAULT_POLL));
        });
    };
    assert!(child.status.success(), "{child:?}");
}
