//! System calls for memory.

use core::hint::black_box;
use std::thread;

use crate::common::{Reason, Recorder, armed, contract, of_kind, records};
use crate::pages::Pages;
use crate::{PAGE, hot, is_live, json, on_hot_thread};
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors, last_call_site};
use tripoint_contract::mock::{Calls, Failing};
use tripoint_contract::{
    Contract, DetectorSet, HotThread, Policies, Policy, RECORDS_PER_TURN, Record, RecordKind, ViolationClass,
};
use tripoint_core::Event;
use tripoint_oracle::forever;
use tripoint_stack::Site;

#[inline(never)]
fn culprit_call() {
    drop(black_box(Pages::map(3)));
}

/// The records of [`culprit_call`]: the test's own heap may grow too.
fn calls_of_culprit(contract: &'static Contract<Reason, 4>, kind: RecordKind) -> Vec<Record> {
    let mut calls = of_kind(&records(contract), kind);
    calls.retain(|call| call.class == ViolationClass::MemoryCall && call.bytes == 3 * PAGE);
    calls
}

#[test]
fn memory_calls_are_caught_with_number_size_and_site() {
    on_hot_thread(|| {
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::MEMORY_CALLS));
        if !is_live(guard.slot(), DetectorSet::MEMORY_CALLS) {
            return;
        }
        // SAFETY: has no arguments. A system call, but not for memory.
        unsafe { libc::getppid() };
        guard.check();
        assert_eq!(records(contract), []);
        culprit_call();
        guard.check();
        let calls = calls_of_culprit(contract, RecordKind::Violation);
        assert_eq!(
            calls.iter().map(|call| call.call).collect::<Vec<_>>(),
            [libc::SYS_mmap as usize, libc::SYS_munmap as usize]
        );
        let report = json(contract, &calls);
        assert_eq!(report["violations"][0]["call"], "mmap");
        let frames = report["violations"][0]["frames"].to_string();
        assert!(frames.contains("culprit_call"), "{report:#}");
        let site = report["violations"][0]["site"].as_str().unwrap();
        assert!(site.contains("tests/detectors/"), "{site}");
    });
}

/// If the thread cannot be asked where it is, its calls are still caught.
#[test]
fn memory_calls_are_caught_without_a_site_too() {
    on_hot_thread(|| {
        let contract = contract();
        let wanted = DetectorSet::MEMORY_CALLS;
        let kernel = Failing::new(LinuxKernel, Calls::SEND_TRAP);
        let guard = contract.register_with(hot(wanted), ThreadDetectors::new(kernel, wanted)).unwrap();
        guard.arm();
        if !is_live(guard.slot(), wanted) {
            return;
        }
        culprit_call();
        guard.check();
        let calls = calls_of_culprit(contract, RecordKind::Violation);
        assert_eq!(calls.len(), 2);
        assert!(calls.iter().all(|call| call.site.frames().len() == 1));
    });
}

/// A thread under the filter makes memory calls as it ends, with signals blocked;
/// and it goes on to make them after its guard is gone.
#[test]
fn a_filtered_thread_ends_and_so_do_its_children() {
    for _ in 0..8 {
        on_hot_thread(|| {
            let contract = contract();
            let guard = armed(contract, hot(DetectorSet::MEMORY_CALLS | DetectorSet::FAULT_TRAP));
            // The child inherits the filter, and is not under the contract.
            thread::spawn(|| drop(black_box(Pages::map(2)))).join().unwrap();
            contract.begin_teardown(&()).unwrap();
            guard.check();
            let alarms = guard.slot().alarms();
            culprit_call();
            guard.check();
            assert_eq!(guard.slot().alarms(), alarms, "after Teardown nothing is held against it");
            drop(guard);
            culprit_call();
        });
    }
}

#[test]
fn memory_calls_in_an_amnesty_are_excused() {
    on_hot_thread(|| {
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::MEMORY_CALLS));
        if !is_live(guard.slot(), DetectorSet::MEMORY_CALLS) {
            return;
        }
        {
            let _amnesty = guard.amnesty(Reason::Rollover);
            culprit_call();
        }
        guard.check();
        assert_eq!(guard.slot().alarms(), 0);
        let excused = calls_of_culprit(contract, RecordKind::Excused);
        assert_eq!(excused.len(), 2);
        assert!(excused.iter().all(|record| record.reason == 1 && !record.site.frames().is_empty()));
    });
}

/// The kernel reads no second argument of `brk`: what is in that register is no number of bytes.
#[test]
fn memory_calls_without_a_size_count_no_bytes() {
    on_hot_thread(|| {
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::MEMORY_CALLS));
        if !is_live(guard.slot(), DetectorSet::MEMORY_CALLS) {
            return;
        }
        // SAFETY: asks for a break that cannot be, and so changes nothing.
        unsafe { libc::syscall(libc::SYS_brk, 0_usize, 3 * PAGE) };
        guard.check();
        let mut calls = of_kind(&records(contract), RecordKind::Violation);
        calls.retain(|call| call.call == libc::SYS_brk as usize && call.address == 0);
        assert_eq!(calls.iter().map(|call| call.bytes).collect::<Vec<_>>(), [0]);
    });
}

/// The thread is asked where it is as long as the answer is used: for the records of a turn,
/// and not once the class is muted. The call is still counted.
#[test]
fn memory_calls_are_asked_about_only_while_their_sites_are_kept() {
    on_hot_thread(|| {
        const BURST: usize = 20;
        let contract = contract();
        let policies = Policies::all(Policy::AlarmOnce);
        let guard = armed(contract, HotThread { policies, ..hot(DetectorSet::MEMORY_CALLS) });
        if !is_live(guard.slot(), DetectorSet::MEMORY_CALLS) {
            return;
        }
        let slot = guard.slot();
        let (asked, calls) = (|| last_call_site(slot).0, || slot.tally(ViolationClass::MemoryCall).count);
        let before = (asked(), calls());
        (0..BURST).for_each(|_| culprit_call());
        assert_eq!(asked() - before.0, RECORDS_PER_TURN, "of the burst");
        assert_eq!(calls() - before.1, 2 * BURST);
        guard.check();
        assert_eq!(slot.alarms(), 1);
        let before = (asked(), calls());
        (0..BURST).for_each(|_| culprit_call());
        guard.check();
        assert_eq!((asked() - before.0, calls() - before.1), (0, 2 * BURST), "muted");
        // What is excused still has a site.
        let amnesty = guard.amnesty(Reason::Disconnect);
        culprit_call();
        drop(amnesty);
        assert_eq!(asked() - before.0, 2);
    });
}

/// The supervisor reports what it charges (design/contract.md `.events`).
#[test]
fn memory_calls_are_observed_by_the_hook() {
    on_hot_thread(|| {
        let (contract, recorder) = (forever(Contract::<Reason, 4>::new()), Recorder::new());
        contract.observe_with(recorder).unwrap();
        contract.begin_init().unwrap();
        let guard = armed(contract, hot(DetectorSet::MEMORY_CALLS));
        if !is_live(guard.slot(), DetectorSet::MEMORY_CALLS) {
            return;
        }
        recorder.take();
        culprit_call();
        let observed = recorder.take();
        let calls = calls_of_culprit(contract, RecordKind::Violation);
        for call in [libc::SYS_mmap, libc::SYS_munmap] {
            let call = call as usize;
            let kept = calls.iter().find(|kept| kept.call == call).unwrap();
            let expected = Event::Violation {
                kind: "violation",
                class: "memory_call",
                slot: 0,
                count: 1,
                bytes: 3 * PAGE,
                address: kept.address,
                call,
            };
            assert!(observed.contains(&(expected, kept.site)), "{observed:#?}");
            assert_ne!(kept.site, Site::UNKNOWN);
        }
    });
}
