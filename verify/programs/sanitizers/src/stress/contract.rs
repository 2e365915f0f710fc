//! Hot threads that violate the contract while the phases change and a cold thread
//! drains their records.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tripoint::contract::{
    Contract, HotThread, NoDetectors, NoReason, Observation, Policies, Policy, RecordKind, Slot,
    ViolationClass,
};

use crate::random::Random;

const HOT: usize = 2;
const ROUNDS: usize = 2000;

type Tested = Contract<NoReason, HOT>;

/// Violates the contract in each round, and returns its slot.
fn violate(contract: &'static Tested, start: &Barrier, mut random: Random) -> &'static Slot {
    let thread = HotThread { policies: Policies::all(Policy::Quarantine), ..HotThread::new("hot") };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    start.wait();
    while !contract.is_armed() {
        guard.check();
        random.pause();
    }
    for round in 0..ROUNDS {
        guard.observe(Observation::new(ViolationClass::Alloc, round));
        guard.check();
        random.pause();
    }
    guard.slot()
}

pub(crate) fn race(random: &mut Random) -> u64 {
    // Threads may name a slot forever, so a contract is never freed.
    let contract: &'static Tested = Box::leak(Box::new(Contract::new()));
    contract.begin_init().unwrap();
    let (start, working) = (Barrier::new(HOT + 1), AtomicUsize::new(HOT));
    let mut taken = 0;
    let slots = thread::scope(|scope| {
        let (start, working) = (&start, &working);
        let threads = [(); HOT].map(|()| {
            let random = random.split();
            scope.spawn(move || {
                let slot = violate(contract, start, random);
                working.fetch_sub(1, Ordering::Relaxed);
                slot
            })
        });
        start.wait();
        contract.begin_warmup().unwrap();
        contract.enter_steady_state(&()).unwrap();
        while working.load(Ordering::Relaxed) > 0 {
            contract.drain(|record| taken += usize::from(record.kind == RecordKind::Violation));
            let request = contract.request_poll();
            let _ = contract.have_polled(request);
            random.pause();
        }
        contract.begin_teardown(&()).unwrap();
        threads.map(|thread| thread.join().unwrap())
    });
    contract.drain(|record| taken += usize::from(record.kind == RecordKind::Violation));
    let lost: usize = slots.iter().map(|slot| slot.records_lost()).sum();
    let violations: usize = slots.iter().map(|slot| slot.tally(ViolationClass::Alloc).count).sum();
    assert_eq!(violations, HOT * ROUNDS);
    assert!(taken <= violations && violations <= taken + lost, "{violations} {taken} {lost}");
    violations as u64
}
