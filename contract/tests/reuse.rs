//! A slot that one thread left and another took (design/contract.md `.slot.reuse`).
#![cfg(feature = "std")]

mod common;

use std::thread;

use common::Reason;
use tripoint_contract::{
    Budget, Contract, DetectorSet, Guard, HotThread, NoDetectors, Observation, Policies, Policy, Report,
    ViolationClass,
};
use tripoint_core::Error;
use tripoint_oracle::forever;

type Small = Contract<Reason, 2>;

fn contract() -> &'static Small {
    let contract: &'static Small = forever(Contract::new());
    contract.begin_init().unwrap();
    contract
}

fn hot(name: &str) -> HotThread<'_> {
    let policies = Policies::all(Policy::Quarantine);
    HotThread { policies, detectors: DetectorSet::empty(), ..HotThread::new(name) }
}

fn register(contract: &'static Small, name: &str) -> Result<Guard<Reason, NoDetectors>, Error> {
    contract.register_with(hot(name), NoDetectors)
}

fn fill(guard: &Guard<Reason, NoDetectors>) {
    guard.observe(Observation::new(ViolationClass::Growth, 8));
}

/// Sessions come and go: each has a slot, with nothing left of the one before.
#[test]
fn a_place_is_taken_again_and_again() {
    let contract = contract();
    for number in 0..if cfg!(miri) { 3 } else { 100 } {
        let name = format!("session {number}");
        thread::spawn(move || {
            let guard = register(contract, &name).unwrap();
            assert_eq!(guard.slot().name().to_string(), name);
            assert_eq!(guard.slot().tally(ViolationClass::Growth).count, 0);
            // Counted, but not reported.
            fill(&guard);
            assert_eq!(guard.slot().tally(ViolationClass::Growth).count, 1);
        })
        .join()
        .unwrap();
    }
    assert_eq!(contract.threads().count(), 2);
}

#[test]
fn a_thread_that_raised_an_alarm_keeps_its_place() {
    let contract = contract();
    for _ in 0..2 {
        thread::spawn(move || {
            let guard = register(contract, "violator").unwrap();
            guard.arm();
            fill(&guard);
            guard.check();
            assert_eq!(guard.slot().alarms(), 1);
        })
        .join()
        .unwrap();
    }
    let mut drained = 0;
    contract.drain(|_| drained += 1);
    assert!(drained >= 2);
    assert!(
        matches!(register(contract, "third").err(), Some(Error::Parameter(why)) if why.contains("slots"))
    );
    assert_eq!(Report::new(contract).alarms(), 2);
}

#[test]
fn records_that_wait_keep_their_place() {
    let contract = contract();
    for _ in 0..2 {
        thread::spawn(move || {
            let guard = register(contract, "rehearsing").unwrap();
            guard.rehearse();
            fill(&guard);
        })
        .join()
        .unwrap();
    }
    assert!(
        matches!(register(contract, "third").err(), Some(Error::Parameter(why)) if why.contains("slots"))
    );
    contract.drain(drop);
    let guard = register(contract, "third").unwrap();
    assert_eq!((guard.slot().alarms(), guard.slot().tally(ViolationClass::Growth).count), (0, 0));
}

/// A thread that comes too late leaves no trace: neither a thread that never was, nor another
/// name for one that left.
#[test]
fn a_thread_that_is_refused_is_not_in_the_report() {
    let contract = contract();
    drop(register(contract, "session").unwrap());
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    let budget = Budget::new(1, 1, 1);
    for _ in 0..3 {
        assert!(register(contract, "latecomer").is_err());
        assert!(contract.register_cold("latecomer", budget).is_err());
    }
    assert_eq!(contract.threads().map(|slot| slot.name().to_string()).collect::<Vec<_>>(), ["session"]);
    let text = Report::new(contract).to_string();
    assert!(text.contains("session") && !text.contains("latecomer"), "{text}");
}

/// The contract remembers that some thread was armed there.
#[test]
fn a_place_that_was_armed_stays_so() {
    let contract = contract();
    for armed in [true, false, false, false] {
        thread::spawn(move || {
            let guard = register(contract, "session").unwrap();
            if armed {
                guard.arm();
                guard.check();
            }
        })
        .join()
        .unwrap();
    }
    assert!(contract.threads().all(|slot| !slot.was_armed()));
    assert!(Report::new(contract).was_armed());
}

/// The arming of a former thread is not the next one's.
#[test]
fn a_thread_that_was_not_armed_shows_whatever_its_place_was() {
    let contract = contract();
    for _ in 0..2 {
        thread::spawn(move || register(contract, "session").unwrap().arm()).join().unwrap();
    }
    assert!(Report::new(contract).was_armed());
    let guard = register(contract, "latecomer").unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    assert!(!Report::new(contract).was_armed());
    guard.check();
    assert!(Report::new(contract).was_armed());
}

/// A thread may live on without its guard, under its filter: the next one is not charged.
#[cfg(tripoint_kernel)]
#[test]
fn a_former_threads_memory_calls_are_not_the_next_ones() {
    use std::sync::mpsc;

    let contract: &'static Contract<Reason, 1> = forever(Contract::new());
    contract.begin_init().unwrap();
    let thread = |name| HotThread { detectors: DetectorSet::MEMORY_CALLS, ..hot(name) };
    let (go, wait) = mpsc::sync_channel::<()>(0);
    let (left, has_left) = mpsc::sync_channel::<()>(0);
    let former = thread::spawn(move || {
        let guard = contract.register(thread("former")).unwrap();
        guard.rehearse();
        drop(guard);
        left.send(()).unwrap();
        let _ = wait.recv();
        // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
        (0..10).for_each(|_| unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                4096,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
        });
    });
    has_left.recv().unwrap();
    contract.drain(drop);
    let next = contract.register(thread("next")).unwrap();
    let before = next.slot().tally(ViolationClass::MemoryCall).count;
    drop(go);
    former.join().unwrap();
    assert_eq!(next.slot().tally(ViolationClass::MemoryCall).count, before);
}

/// The next thread begins with a budget of its own.
#[cfg(tripoint_kernel)]
#[test]
fn the_sentinel_knows_which_thread_has_the_place() {
    use tripoint_contract::Sentinel;
    use tripoint_contract::Warning;

    let contract: &'static Contract<Reason, 1> = forever(Contract::new());
    contract.begin_init().unwrap();
    let mut sentinel = Sentinel::new(contract, &[]);
    let mut over = 0;
    for time in 0..10 {
        let budget = Budget::new(1_000, 1 << 30, 1_000_000);
        let cold = contract.register_cold("cold", budget).unwrap();
        let mut look = |now| {
            sentinel.poll(now, |warning| over += usize::from(matches!(warning, Warning::OverBudget { .. })));
        };
        look(3 * time);
        let spend = |number: u64| {
            let seen = Observation::new(ViolationClass::Growth, 10);
            (0..number).for_each(|_| cold.slot().observe(seen, || unreachable!("counted only")));
        };
        // The allocator may run too, and adds a little.
        spend(900 - time % 3);
        look(3 * time + 1);
    }
    assert_eq!(over, 0);
}
