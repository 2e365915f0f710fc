//! All detectors at once: what a refusal of the kernel costs, and a whole warm-up.

use std::sync::mpsc;
use std::thread;

use crate::common::{Reason, contract, records};
use crate::{hot, json, on_hot_thread};
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors};
use tripoint_contract::mock::{Calls, Failing};
use tripoint_contract::{DetectorSet, Guard, HotThread, Mode, Progress, Report, Warmup, WarmupOptions};
use tripoint_core::Error;

/// Whether the error names the core that the thread was to be bound to.
fn is_not_bound(error: Option<Error>) -> bool {
    matches!(error, Some(Error::Parameter(why)) if why.contains("HotThread::core"))
}

/// Every refusal of the kernel leaves its detector not live, and all else working.
#[test]
fn refusals_of_the_kernel_are_reported() {
    let filtered = DetectorSet::MEMORY_CALLS | DetectorSet::WAITS;
    let every = DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL | filtered;
    for (refused, lost) in [
        (Calls::FAULTS, DetectorSet::FAULT_POLL),
        (Calls::HANDLE_TRAPS, DetectorSet::FAULT_TRAP),
        (Calls::OPEN_FAULT_EVENT, DetectorSet::FAULT_TRAP),
        (Calls::INSTALL_FILTER, filtered),
        (Calls::TOUCH, DetectorSet::FAULT_TRAP | DetectorSet::MEMORY_CALLS),
        (Calls::TRY_TO_WAIT, DetectorSet::WAITS),
    ] {
        on_hot_thread(move || {
            let contract = contract();
            let detectors = ThreadDetectors::new(Failing::new(LinuxKernel, refused), every);
            let guard = contract.register_with(hot(every), detectors).unwrap();
            guard.arm();
            assert!(!guard.slot().live().intersects(lost), "{refused:?}");
            assert!(Report::new(contract).missing().contains(lost));
            guard.check();
            assert_eq!(guard.slot().alarms(), 0);
        });
    }
    on_hot_thread(move || {
        let thread = HotThread { core: Some(0), ..hot(every) };
        let detectors = ThreadDetectors::new(Failing::new(LinuxKernel, Calls::PIN), every);
        assert!(is_not_bound(contract().register_with(thread, detectors).err()));
        let thread = HotThread { core: Some(usize::MAX), ..hot(DetectorSet::empty()) };
        assert!(is_not_bound(contract().register(thread).err()));
        let thread = HotThread { core: Some(0), ..hot(DetectorSet::empty()) };
        assert!(contract().register(thread).is_ok());
    });
}

/// The whole warm-up with every detector the kernel has, and a clean steady state.
#[test]
fn a_warm_up_with_every_detector_arms() {
    let contract = contract();
    let (stop, stopped) = mpsc::channel::<()>();
    let (ready, registered) = mpsc::channel::<()>();
    let hot = thread::spawn(move || {
        let guard: Guard<Reason> = contract.register(hot(DetectorSet::all())).unwrap();
        ready.send(()).unwrap();
        drop(ready);
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            guard.check();
            core::hint::spin_loop();
        }
        guard.slot()
    });
    registered.recv().unwrap();
    contract.begin_warmup().unwrap();
    let options = WarmupOptions { quiet_window: 1_000_000, patience: 60_000_000_000, ..Default::default() };
    let mut warmup = Warmup::new(contract, &[], &(), options);
    let start = std::time::Instant::now();
    let outcome = loop {
        match warmup.step(u64::try_from(start.elapsed().as_nanos()).unwrap()) {
            Progress::Done => break Ok(()),
            Progress::Failed(failure) => break Err(failure),
            _ => thread::yield_now(),
        }
    };
    if let Err(failure) = outcome {
        let records = records(contract);
        panic!("{failure}: {:#}", json(contract, &records));
    }
    tripoint_oracle::wait_until(|| contract.is_armed());
    let slot = contract.hot_threads().next().unwrap();
    assert_eq!(slot.mode(), Mode::Armed);
    assert_eq!(slot.alarms(), 0, "{:?}", records(contract));
    stop.send(()).unwrap();
    let slot = hot.join().unwrap();
    assert!(slot.live().contains(DetectorSet::ALLOCATOR));
}
