//! What the program's hook observes of the contract, and tallies in words of the program
//! (design/contract.md `.events`, `.tallies`).
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]
#![cfg(feature = "std")]

mod common;

use core::hint::black_box;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use common::{Reason, Recorder, of_kind, records};
use tripoint_contract::{
    Budget, Contract, ContractAllocator, DetectorSet, Guard, HotThread, NoDetectors, Observation, Policies,
    Policy, RECORDS_PER_TURN, RecordKind, Report, ViolationClass, ViolationSet,
};
use tripoint_core::{ContractWords, Error, Event, EventHook};
use tripoint_oracle::forever;
use tripoint_stack::Site;

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

/// A contract that reports, in Boot.
fn reporting() -> (&'static Contract<Reason, 4>, &'static Recorder) {
    let (contract, recorder) = (forever(Contract::new()), Recorder::new());
    contract.observe_with(recorder).unwrap();
    (contract, recorder)
}

/// Advances to SteadyState, with a thread that is held to allocations alone and is armed.
fn armed(contract: &'static Contract<Reason, 4>, policy: Policy) -> Guard<Reason, NoDetectors> {
    contract.begin_init().unwrap();
    let thread = HotThread {
        classes: ViolationSet::ALLOC | ViolationSet::AMNESTY_OVERRUN,
        detectors: DetectorSet::ALLOCATOR,
        policies: Policies::all(policy),
        ..HotThread::new("hot")
    };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    guard
}

fn violation(kind: &'static str, count: usize, bytes: usize) -> Event {
    Event::Violation { kind, class: "alloc", slot: 0, count, bytes, address: 0, call: 0 }
}

/// An allocation that is not freed here, because a free is none of the events asked for.
#[inline(never)]
fn culprit() -> Box<[u8; 40]> {
    black_box(Box::new([7; 40]))
}

#[test]
fn a_violation_is_observed_at_once_with_class_thread_and_site() {
    let (contract, recorder) = reporting();
    let guard = armed(contract, Policy::Quarantine);
    let phases = [("Boot", "Init"), ("Init", "Warmup"), ("Warmup", "SteadyState")];
    recorder.expect(&phases.map(|(from, to)| Event::Phase { from, to }));

    drop(culprit());
    // Before any check, and without a drain.
    let site = recorder.expect(&[violation("violation", 1, 40)]);
    guard.check();
    let site_of_alarm = recorder.expect(&[violation("alarm", 1, 40)]);
    drop(guard);
    // Both have the site of the records, which are still there.
    let kept = records(contract);
    let of = |kind| of_kind(&kept, kind)[0].site;
    assert_eq!((site, site_of_alarm), (of(RecordKind::Violation), of(RecordKind::Alarm)));
    let is_walked = cfg!(tripoint_kernel);
    assert_eq!(site != Site::UNKNOWN, is_walked);

    contract.begin_teardown(&()).unwrap();
    recorder.expect(&[Event::Phase { from: "SteadyState", to: "Teardown" }]);
}

#[test]
fn amnesties_and_what_they_excuse_are_observed() {
    let (contract, recorder) = reporting();
    contract.set_amnesty_budget_of(Reason::Rollover, 0);
    let guard = armed(contract, Policy::Quarantine);
    recorder.clear();
    {
        let _amnesty = guard.amnesty(Reason::Disconnect);
        drop(culprit());
    }
    let (slot, reason) = (0, "disconnect");
    recorder.expect(&[
        Event::BeginAmnesty { slot, reason },
        violation("excused", 1, 40),
        Event::EndAmnesty { slot, reason },
    ]);
    // One that the budget does not allow.
    drop(guard.amnesty(Reason::Rollover));
    let class = "amnesty_overrun";
    let overrun =
        Event::Violation { kind: "violation", class, slot: 0, count: 1, bytes: 0, address: 0, call: 0 };
    let reason = "rollover";
    recorder.expect(&[Event::BeginAmnesty { slot, reason }, overrun, Event::EndAmnesty { slot, reason }]);
}

#[test]
fn a_rehearsal_is_observed_as_one() {
    let (contract, recorder) = reporting();
    contract.begin_init().unwrap();
    let thread = HotThread { classes: ViolationSet::FILL, ..HotThread::new("hot") };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    guard.rehearse();
    recorder.clear();
    let fill = Observation::new(ViolationClass::Fill, 3);
    guard.observe(fill);
    let (kind, class) = ("rehearsed", "fill");
    recorder.expect(&[Event::Violation { kind, class, slot: 0, count: 1, bytes: 3, address: 0, call: 0 }]);
    guard.follow_lifecycle();
    guard.observe(fill);
    // What is only counted is not reported.
    recorder.expect(&[]);
}

/// A burst costs the hook no more than it costs the ring.
#[test]
fn of_a_burst_the_first_events_are_observed() {
    let (contract, recorder) = reporting();
    let guard = armed(contract, Policy::Quarantine);
    recorder.clear();
    (0..10 * RECORDS_PER_TURN).for_each(|_| guard.observe(Observation::new(ViolationClass::Alloc, 1)));
    recorder.expect(&[violation("violation", 1, 1); RECORDS_PER_TURN]);
    assert_eq!(guard.slot().armed_tally(ViolationClass::Alloc).count, 10 * RECORDS_PER_TURN);
}

/// What a hook allocates within a record is charged to no thread.
#[test]
fn a_hook_that_allocates_raises_no_alarm_by_that() {
    struct Wasteful;
    impl EventHook for Wasteful {
        fn event(&self, _: Event) {
            drop(culprit());
        }
    }
    let contract: &'static Contract<Reason, 4> = forever(Contract::new());
    contract.observe_with(&Wasteful).unwrap();
    let guard = armed(contract, Policy::Quarantine);
    let before = guard.slot().tally(ViolationClass::Alloc).count;
    guard.observe(Observation::new(ViolationClass::Alloc, 1));
    guard.check();
    assert_eq!(guard.slot().tally(ViolationClass::Alloc).count, before + 1);
    assert!(guard.slot().overlapped() >= 2, "once for the violation, once for the alarm");
}

/// In `Amnesty` as well as in a record; and what comes after the amnesty is charged as before.
#[test]
fn a_hook_that_allocates_at_an_amnesty_is_neither_charged_nor_excused() {
    struct Wasteful;
    impl EventHook for Wasteful {
        fn event(&self, event: Event) {
            if matches!(event, Event::BeginAmnesty { .. } | Event::EndAmnesty { .. }) {
                drop(culprit());
            }
        }
    }
    let contract: &'static Contract<Reason, 4> = forever(Contract::new());
    contract.observe_with(&Wasteful).unwrap();
    let guard = armed(contract, Policy::Quarantine);
    let before = guard.slot().tally(ViolationClass::Alloc);
    drop(guard.amnesty(Reason::Disconnect));
    assert_eq!(guard.slot().tally(ViolationClass::Alloc), before);
    guard.observe(Observation::new(ViolationClass::Alloc, 1));
    assert_eq!(guard.slot().tally(ViolationClass::Alloc).unexcused(), before.unexcused() + 1);
}

/// Runs `scenario` with a hook that unwinds at events for which `at` returns true, in a process of its
/// own, which has to abort.
#[cfg(unix)]
fn aborts_if_the_hook_unwinds(
    test: &str,
    at: fn(&Event) -> bool,
    scenario: impl FnOnce(&Guard<Reason, NoDetectors>),
) {
    use core::panic::AssertUnwindSafe;
    use std::os::unix::process::ExitStatusExt;
    use std::panic::catch_unwind;

    struct Unwinding(fn(&Event) -> bool);
    impl EventHook for Unwinding {
        fn event(&self, event: Event) {
            assert!(!(self.0)(&event), "the hook's own panic");
        }
    }
    const WENT_ON: &str = "the thread went on";
    let Some(output) = common::in_child(test) else {
        let contract: &'static Contract<Reason, 4> = forever(Contract::new());
        contract.observe_with(forever(Unwinding(at))).unwrap();
        let guard = armed(contract, Policy::Quarantine);
        let ended = catch_unwind(AssertUnwindSafe(|| scenario(&guard)));
        println!("{WENT_ON}: excused {}, busy {}", guard.slot().is_excused(), guard.slot().is_busy());
        return ended.unwrap();
    };
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!out.contains(WENT_ON) && error.contains("the hook's own panic"), "{out}{error}");
    assert_eq!(output.status.signal(), Some(6), "SIGABRT: {error}");
}

#[cfg(unix)]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
#[test]
fn a_hook_that_unwinds_from_a_record_ends_the_process() {
    let at = |event: &Event| matches!(event, Event::Violation { kind: "violation", .. });
    aborts_if_the_hook_unwinds("a_hook_that_unwinds_from_a_record_ends_the_process", at, |guard| {
        guard.observe(Observation::new(ViolationClass::Alloc, 1));
    });
}

#[cfg(unix)]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
#[test]
fn a_hook_that_unwinds_as_an_amnesty_begins_ends_the_process() {
    let at = |event: &Event| matches!(event, Event::BeginAmnesty { .. });
    aborts_if_the_hook_unwinds("a_hook_that_unwinds_as_an_amnesty_begins_ends_the_process", at, |guard| {
        drop(guard.amnesty(Reason::Disconnect));
    });
}

#[cfg(unix)]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
#[test]
fn a_hook_that_unwinds_as_an_amnesty_ends_ends_the_process() {
    let at = |event: &Event| matches!(event, Event::EndAmnesty { .. });
    aborts_if_the_hook_unwinds("a_hook_that_unwinds_as_an_amnesty_ends_ends_the_process", at, |guard| {
        drop(guard.amnesty(Reason::Disconnect));
    });
}

#[test]
fn a_hook_is_set_once_and_before_init() {
    let (contract, recorder) = reporting();
    assert!(matches!(contract.observe_with(recorder), Err(Error::Parameter(why)) if why.contains("already")));
    contract.begin_init().unwrap();
    assert!(matches!(contract.observe_with(recorder), Err(Error::Parameter(why)) if why.contains("Init")));
}

/// A hook with words for what a contract counts.
struct Keeps(&'static [AtomicUsize]);

impl EventHook for Keeps {
    fn event(&self, _: Event) {}

    fn words_for(&self, contract: &ContractWords<'_>) -> Result<Option<&'static [AtomicUsize]>, Error> {
        assert_eq!((contract.threads, contract.of_thread()), (4, OF_THREAD));
        assert_eq!(contract.classes, ViolationClass::NAMES);
        Ok(Some(self.0))
    }
}

/// The words before a thread's numbers, and all of its words.
const BEFORE: usize = 16;
const OF_THREAD: usize = BEFORE + 8 * ViolationClass::COUNT;

#[test]
fn tallies_can_be_read_in_words_of_a_hook() {
    let words: &'static Vec<AtomicUsize> =
        forever((0..4 * OF_THREAD + 5).map(|_| AtomicUsize::new(9)).collect());
    let contract: &'static Contract<Reason, 4> = forever(Contract::new());
    let too_few = contract.observe_with(forever(Keeps(&words[..4 * OF_THREAD - 1])));
    assert!(matches!(too_few, Err(Error::Parameter(why)) if why.contains("too few words")));
    let (_, recorder) = reporting();
    contract.observe_with(forever((recorder, Keeps(words)))).unwrap();
    contract.begin_init().unwrap();

    let thread = HotThread { classes: ViolationSet::all(), ..HotThread::new("hot") };
    // The first place stays another thread's.
    let other = contract.register_cold("cold", Budget::new(1, 1, 1)).unwrap();
    let guard = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let guard = contract.register_with(thread, NoDetectors).unwrap();
                let word = |set: usize, kind: usize, class: ViolationClass| {
                    let kinds = 4 * ViolationClass::COUNT;
                    let at = OF_THREAD + BEFORE + set * kinds + kind * ViolationClass::COUNT + class.index();
                    words[at].load(Relaxed)
                };
                assert_eq!((word(0, 0, ViolationClass::Fill), word(1, 3, ViolationClass::Fill)), (0, 0));
                guard.observe(Observation::new(ViolationClass::Fill, 100));
                guard.arm();
                guard.observe(Observation::new(ViolationClass::Fill, 10));
                {
                    let _amnesty = guard.amnesty(Reason::Disconnect);
                    guard.observe(Observation::new(ViolationClass::Fill, 1));
                }
                let of_all = [0, 1, 2, 3].map(|kind| word(0, kind, ViolationClass::Fill));
                let while_armed = [0, 1, 2, 3].map(|kind| word(1, kind, ViolationClass::Fill));
                assert_eq!((of_all, while_armed), ([3, 111, 1, 1], [2, 11, 1, 1]));
                let tally = guard.slot().tally(ViolationClass::Fill);
                assert_eq!([tally.count, tally.bytes, tally.excused, tally.excused_bytes], of_all);
                assert_eq!(guard.slot().armed_tally(ViolationClass::Fill).bytes, 11);
            })
            .join()
    });
    guard.unwrap();
    drop(other);
    // Beyond the last thread's, and before any registered, nothing was written.
    assert!(words[2 * OF_THREAD..].iter().all(|word| word.load(Relaxed) == 9));
    // The report is made of the same numbers.
    let report = Report::drained(contract, &mut Vec::new()).to_string();
    assert!(report.contains("hot"), "{report}");
}
