//! The steady-state contract of tripoint.
//!
//! In the environment, `WITH` turns a detector on that is no default, and `WITHOUT` one off, to see what is missed then.

use std::thread;

use tripoint::contract::linux::lock_memory;
use tripoint::contract::{
    Contract, ContractAllocator, DetectorSet, HotThread, RecordKind, ViolationClass, ViolationSet,
};

use crate::case::{Act, C_HEAP, FAULT, Facts, GROWTH, MEMORY_CALL, RUST_HEAP, WAIT, cannot_run};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();
static CONTRACT: Contract = Contract::new();

/// Its own set of detectors, each with the classes that it alone sees.
const DETECTORS: [(&str, DetectorSet, ViolationSet); 5] = [
    (
        "allocator",
        DetectorSet::ALLOCATOR,
        ViolationSet::ALLOC.union(ViolationSet::REALLOC).union(ViolationSet::DEALLOC),
    ),
    ("foreign_malloc", DetectorSet::FOREIGN_MALLOC, ViolationSet::FOREIGN_MALLOC),
    ("memory_calls", DetectorSet::MEMORY_CALLS, ViolationSet::MEMORY_CALL),
    ("waits", DetectorSet::WAITS, ViolationSet::WAIT),
    (
        "faults",
        DetectorSet::FAULT_TRAP.union(DetectorSet::FAULT_POLL),
        ViolationSet::MINOR_FAULT.union(ViolationSet::MAJOR_FAULT),
    ),
];

fn fact_of(class: ViolationClass) -> Facts {
    match class {
        ViolationClass::Alloc | ViolationClass::Realloc | ViolationClass::Dealloc => RUST_HEAP,
        ViolationClass::ForeignMalloc => C_HEAP,
        ViolationClass::MemoryCall => MEMORY_CALL,
        ViolationClass::MinorFault | ViolationClass::MajorFault => FAULT,
        ViolationClass::Growth => GROWTH,
        ViolationClass::Wait => WAIT,
        _ => 0,
    }
}

/// The detectors that a variable of the environment names, with their classes.
fn named_in(variable: &str) -> Option<(DetectorSet, ViolationSet)> {
    let named = std::env::var(variable).ok()?;
    let (_, detectors, classes) =
        DETECTORS.into_iter().find(|(name, ..)| *name == named).expect("a detector's name");
    Some((detectors, classes))
}

/// A hot thread with every default detector and one more that is wanted, except one that is to be left out.
fn hot_thread() -> HotThread<'static> {
    let mut thread = HotThread::new("steady");
    if let Some((detectors, _)) = named_in("WITH") {
        thread.detectors.insert(detectors);
    }
    if let Some((detectors, classes)) = named_in("WITHOUT") {
        thread.detectors.remove(detectors);
        thread.classes.remove(classes);
    }
    thread
}

fn watch_here(prepare: fn() -> Act, turns: u64) -> Facts {
    // Code that runs for the first time would fault.
    let _ = lock_memory(&[]);
    let mut act = prepare();
    let thread = hot_thread();
    let guard = CONTRACT.register(thread).expect("a place for one thread");
    CONTRACT.begin_warmup().expect("Init comes before");
    CONTRACT.enter_steady_state(&()).expect("Warmup comes before");
    guard.check();
    let missing = thread.detectors.difference(guard.slot().live());
    if !missing.is_empty() {
        cannot_run(&format!("not live: {}", missing.names().collect::<Vec<_>>().join(", ")));
    }
    guard.poll();
    guard.check();
    CONTRACT.drain(drop);
    for _ in 0..turns {
        act();
        guard.check();
    }
    guard.poll();
    guard.check();
    drop(guard);
    let mut seen = 0;
    CONTRACT.drain(|record| {
        if record.kind == RecordKind::Alarm {
            seen |= fact_of(record.class);
            println!("ALARM {} x{}", record.class, record.count);
        }
    });
    seen
}

pub(crate) fn watch(prepare: fn() -> Act, turns: u64) -> Facts {
    CONTRACT.begin_init().expect("Boot comes before");
    thread::spawn(move || watch_here(prepare, turns)).join().expect("cases do not panic")
}
