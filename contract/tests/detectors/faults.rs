//! Page faults: trapped, polled, and those that a fork causes.

use core::mem::MaybeUninit;

use crate::common::{armed, contract, in_child, of_kind, records};
use crate::pages::Pages;
use crate::{PAGE, hot, is_live, json, on_hot_thread};
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors};
use tripoint_contract::mock::{Calls, Failing};
use tripoint_contract::{DetectorSet, Record, RecordKind, Report, ViolationClass};

#[test]
fn faults_trap_one_by_one_at_their_address() {
    on_hot_thread(|| {
        // Few enough for a turn's records, together with the faults of code that first runs.
        let (warm, fresh) = (Pages::map(64), [(); 4].map(|()| Pages::map(8)));
        warm.culprit_touch();
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL));
        if !is_live(guard.slot(), DetectorSet::FAULT_TRAP) {
            return;
        }
        warm.culprit_touch();
        let of_warm = records(contract).into_iter().filter(|fault| warm.contains(fault)).count();
        assert_eq!(of_warm, 0, "prefaulted pages do not fault");
        // A rehearsal: the faults of code that first runs would take records of the first turn.
        Pages::map(8).culprit_touch();
        guard.check();
        records(contract);
        let mut faults = Vec::new();
        for fresh in &fresh {
            fresh.culprit_touch();
            guard.check();
            faults = of_kind(&records(contract), RecordKind::Violation);
            // Code that first runs faults too.
            faults.retain(|fault| fresh.contains(fault));
            let addresses: Vec<_> = faults.iter().map(|fault| fault.address).collect();
            let pages: Vec<_> = (0..8).map(|page| fresh.base.addr() + page * PAGE).collect();
            assert_eq!(addresses, pages);
        }
        assert!(guard.slot().alarms() > 0);
        let report = json(contract, &faults);
        let site = report["violations"][0]["site"].as_str().unwrap();
        assert!(site.contains("culprit_touch"), "{site}");
    });
}

#[test]
fn polls_find_what_traps_did_not_and_nothing_twice() {
    on_hot_thread(|| {
        let (trapped, in_kernel) = (Pages::map(8), Pages::map(8));
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL));
        if !is_live(guard.slot(), DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL) {
            return;
        }
        let before = guard.slot().tally(ViolationClass::MinorFault).count;
        trapped.culprit_touch();
        guard.poll();
        assert_eq!(guard.slot().tally(ViolationClass::MinorFault).count - before, 8);
        // The kernel's own writes to fresh pages do not trap.
        let mut pipe = [0; 2];
        // SAFETY: two descriptors, valid to write.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let text = [7_u8; 8];
        for page in 0..8 {
            // SAFETY: one byte of `text`, and one of a page of the mapping.
            unsafe {
                assert_eq!(libc::write(pipe[1], text.as_ptr().cast(), 1), 1);
                assert_eq!(libc::read(pipe[0], in_kernel.base.add(page * PAGE).cast(), 1), 1);
            }
        }
        assert_eq!(guard.slot().tally(ViolationClass::MinorFault).count - before, 8);
        guard.poll();
        assert_eq!(guard.slot().tally(ViolationClass::MinorFault).count - before, 16);
        guard.poll();
        assert_eq!(guard.slot().tally(ViolationClass::MinorFault).count - before, 16);
        for descriptor in pipe {
            // SAFETY: opened above.
            unsafe { libc::close(descriptor) };
        }
    });
}

/// Without perf events faults are polled, and the report shows that.
#[test]
fn faults_are_polled_if_they_cannot_trap() {
    on_hot_thread(|| {
        let contract = contract();
        let wanted = DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL;
        let kernel = Failing::new(LinuxKernel, Calls::OPEN_FAULT_EVENT);
        let guard = contract.register_with(hot(wanted), ThreadDetectors::new(kernel, wanted)).unwrap();
        contract.begin_warmup().unwrap();
        contract.enter_steady_state(&()).unwrap();
        guard.check();
        assert_eq!(guard.slot().live(), DetectorSet::FAULT_POLL);
        let report = Report::new(contract);
        assert_eq!(report.missing(), DetectorSet::FAULT_TRAP);
        assert_eq!(report.outcome().name(), "passed_with_fewer_detectors");
        let fresh = Pages::map(16);
        fresh.culprit_touch();
        guard.check();
        assert_eq!(guard.slot().alarms(), 0, "no thread has polled yet");
        let request = contract.request_poll();
        guard.check();
        assert!(contract.have_polled(request));
        guard.check();
        let alarms = of_kind(&records(contract), RecordKind::Alarm);
        assert_eq!((alarms[0].class, alarms[0].count), (ViolationClass::MinorFault, 16));
    });
}

/// While a child lives, prefaulted pages fault again, unless they were kept out of the child.
/// So do those of every other thread: the test forks in a process of its own.
#[test]
fn a_fork_makes_prefaulted_pages_fault_again() {
    let Some(output) = in_child("faults::a_fork_makes_prefaulted_pages_fault_again") else {
        return on_hot_thread(fork_and_touch);
    };
    assert!(output.status.success(), "{output:?}");
}

fn fork_and_touch() {
    let (inherited, kept_out) = (Pages::map(8), Pages::map(8));
    inherited.culprit_touch();
    kept_out.culprit_touch();
    kept_out.advise(libc::MADV_DONTFORK);
    let contract = contract();
    let guard = armed(contract, hot(DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL));
    if !is_live(guard.slot(), DetectorSet::FAULT_TRAP) {
        return;
    }
    let mut pipe = [0; 2];
    // SAFETY: two descriptors, valid to write.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the child only reads a byte, which is allowed after a fork.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut byte = MaybeUninit::<u8>::uninit();
        // SAFETY: one byte, valid to write; the parent's end closes with it.
        unsafe {
            libc::close(pipe[1]);
            libc::read(pipe[0], byte.as_mut_ptr().cast(), 1);
            libc::_exit(0);
        }
    }
    // The fork itself costs faults on the stack and elsewhere.
    guard.check();
    let _ = records(contract);
    kept_out.culprit_touch();
    let in_pages = |pages: &Pages, records: &[Record]| {
        of_kind(records, RecordKind::Violation).iter().filter(|record| pages.contains(record)).count()
    };
    guard.check();
    assert_eq!(in_pages(&kept_out, &records(contract)), 0);
    inherited.culprit_touch();
    guard.check();
    assert_eq!(in_pages(&inherited, &records(contract)), 8);
    // SAFETY: opened above; the child ends when the write end closes.
    unsafe {
        libc::close(pipe[1]);
        libc::waitpid(child, core::ptr::null_mut(), 0);
        libc::close(pipe[0]);
    }
}
