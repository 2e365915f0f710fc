//! What the report says, and that it says each thing once. (design/contract.md
//! `.report`.)
#![cfg(not(feature = "interpose-malloc"))]
#![cfg(all(tripoint_kernel, feature = "symbols"))]

mod common;

use std::process::Command;

use common::{Reason, contract};
use tripoint_contract::{
    AmnestyReason, Contract, ContractAllocator, DetectorSet, Guard, HotThread, NoDetectors, Observation,
    Outcome, Policies, Policy, REASONS_MAX, Record, RecordKind, Report, Symbols, ViolationClass,
    ViolationSet, current,
};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

type Bare = Guard<Reason, NoDetectors>;

fn hot() -> HotThread<'static> {
    let policies = Policies::all(Policy::Quarantine);
    let classes = ViolationSet::GROWTH
        | ViolationSet::MEMORY_CALL
        | ViolationSet::MINOR_FAULT
        | ViolationSet::AMNESTY_OVERRUN;
    HotThread { policies, classes, clock: || 1_500_000_007, ..HotThread::new("hot") }
}

fn drained(contract: &tripoint_contract::Contract<Reason, 4>) -> Vec<Record> {
    common::records(contract)
}

fn text(contract: &tripoint_contract::Contract<Reason, 4>, records: &[Record]) -> String {
    Report { records, symbols: &Symbols, ..Report::new(contract) }.to_string()
}

#[inline(never)]
fn culprit_one(guard: &Bare) {
    guard.observe(Observation::new(ViolationClass::Growth, 100));
}

#[inline(never)]
fn culprit_two(guard: &Bare) {
    guard.observe(Observation::new(ViolationClass::Growth, 1));
}

#[test]
fn records_of_one_place_are_one_line() {
    let contract = contract();
    let guard: Bare = contract.register_with(hot(), NoDetectors).unwrap();
    guard.arm();
    for _ in 0..3 {
        (0..4).for_each(|_| culprit_one(&guard));
        culprit_two(&guard);
        guard.check();
    }
    let records = drained(contract);
    let text = text(contract, &records);
    let of = |part: &str| text.lines().filter(|line| line.contains(part)).collect::<Vec<_>>();
    let one = of("culprit_one");
    let [violation] = one[..] else { panic!("{text}") };
    let start =
        "violation: growth x12 on hot, 1200 bytes, at 1.500000007 s and 11 times more until 1.500000007 s, ";
    assert!(violation.starts_with(start), "{violation}");
    // The alarms are of the same events, which are printed once.
    assert_eq!(of("alarm: "), [""; 0]);
    assert!(matches!(of("culprit_two")[..], [line] if line.contains(" x3 on hot, 3 bytes")), "{text}");
    let mut json = String::new();
    Report { records: &records, symbols: &Symbols, ..Report::new(contract) }.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let groups: Vec<_> = json["sites"].as_array().unwrap().iter().collect();
    assert_eq!(groups.len(), 3);
    assert_eq!((&groups[0]["count"], &groups[0]["records"]), (&12.into(), &12.into()));
    let callers = groups[0]["callers"].as_str().unwrap();
    assert!(callers.contains("report.rs:") && callers.contains("records_of_one_place"), "{callers}");
    assert!(
        violation.ends_with(&format!("{} < {callers}", groups[0]["site"].as_str().unwrap())),
        "{violation}"
    );
    // No thread drained between the turns: three alarms are one record.
    assert_eq!((&groups[2]["kind"], &groups[2]["count"]), (&"alarm".into(), &15.into()));
    assert_eq!(json["violations"].as_array().unwrap().len(), records.len(), "and each by itself");
}

/// Without symbols the line ends in a command, which says where it was.
#[test]
fn a_site_without_symbols_is_a_command_that_resolves_it() {
    let contract = contract();
    let guard: Bare = contract.register_with(hot(), NoDetectors).unwrap();
    guard.arm();
    culprit_one(&guard);
    culprit_two(&guard);
    guard.check();
    let text = Report { records: &drained(contract), ..Report::new(contract) }.to_string();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("violation: growth x1 ")).collect();
    let program = std::env::current_exe().unwrap();
    let command = format!("addr2line -Cfipe '{}' 0x", program.display());
    let commands: Vec<_> =
        lines.iter().map(|line| line.find(&command).map(|begin| &line[begin..]).expect(line)).collect();
    let [one, two] = commands[..] else { panic!("{text}") };
    if Command::new("addr2line").arg("-v").output().is_err() {
        tripoint_oracle::skipped!("there is no addr2line here");
        return;
    }
    for (command, culprit, other) in
        [(one, "culprit_one", "culprit_two"), (two, "culprit_two", "culprit_one")]
    {
        let found = Command::new("sh").args(["-c", command]).output().unwrap();
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(found.contains(culprit) && found.contains("report.rs:") && !found.contains(other), "{found}");
    }
}

/// The text escapes what would break its lines; the JSON has the name as it is.
#[test]
fn the_name_of_a_thread_breaks_no_line() {
    const NAME: &str = "two\nlines\u{1b}[2J";
    let contract = contract();
    let _guard: Bare = contract.register_with(HotThread { name: NAME, ..hot() }, NoDetectors).unwrap();
    let text = text(contract, &[]);
    assert!(text.lines().any(|line| line.starts_with("thread two\\nlines\\u{1b}[2J (")), "{text}");
    let mut json = String::new();
    Report::new(contract).write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["threads"][0]["name"], NAME);
}

#[test]
fn a_line_names_the_call_and_the_address() {
    let contract = contract();
    let guard: Bare = contract.register_with(hot(), NoDetectors).unwrap();
    guard.arm();
    let madvise = usize::try_from(libc::SYS_madvise).unwrap();
    guard.observe(Observation {
        address: 0x7000,
        call: madvise,
        ..Observation::new(ViolationClass::MemoryCall, 4_096)
    });
    guard.observe(Observation { address: 0x9000, ..Observation::new(ViolationClass::MinorFault, 0) });
    guard.check();
    let all = drained(contract);
    let told = |kind: RecordKind, records: &[Record]| {
        let text = text(contract, records);
        for what in [
            "memory_call madvise x1 on hot, 4096 bytes at 0x7000, at 1.5",
            "minor_fault x1 on hot, 0 bytes at 0x9000",
        ] {
            assert!(text.contains(&format!("{}: {what}", kind.name())), "{kind:?} {what} in\n{text}");
        }
    };
    told(RecordKind::Violation, &all);
    // A program that keeps only the alarms learns the same from them.
    told(RecordKind::Alarm, &common::of_kind(&all, RecordKind::Alarm));
}

/// An alarm is printed if not every one of its events is.
#[test]
fn an_alarm_of_events_without_records_is_a_line() {
    let contract = contract();
    let guard: Bare = contract.register_with(hot(), NoDetectors).unwrap();
    guard.arm();
    (0..2).for_each(|_| culprit_two(&guard));
    guard.check();
    let mut records = drained(contract);
    assert!(!text(contract, &records).contains("alarm: "));
    let lost = records.iter().position(|record| record.kind == RecordKind::Violation).unwrap();
    records.remove(lost);
    let text = text(contract, &records);
    for line in ["violation: growth x1 on hot, 1 byte,", "alarm: growth x2 on hot, 2 bytes,"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn a_drained_report_has_what_waits_and_keeps_what_it_had() {
    let contract = contract();
    let guard: Bare = contract.register_with(hot(), NoDetectors).unwrap();
    guard.arm();
    let mut records = Vec::new();
    culprit_one(&guard);
    guard.check();
    assert!(Report::drained(contract, &mut records).to_string().contains("culprit_one"));
    culprit_two(&guard);
    guard.check();
    let text = Report::drained(contract, &mut records).to_string();
    assert!(text.contains("culprit_one") && text.contains("culprit_two"), "{text}");
    assert!(text.contains("\nrehearsals: none\n"), "{text}");
    records.clear();
    assert!(!Report::drained(contract, &mut records).to_string().contains("culprit"));
}

/// What happened before arming is counted apart from what is judged.
#[test]
fn events_while_armed_and_events_in_all_are_both_there() {
    let contract = contract();
    let guard: Bare = contract.register_with(hot(), NoDetectors).unwrap();
    (0..5).for_each(|_| culprit_one(&guard));
    guard.arm();
    culprit_one(&guard);
    guard.check();
    let text = text(contract, &drained(contract));
    let line =
        "growth: 1 event while armed, 100 bytes, 0 of them excused; 6 events since it registered, 600 bytes";
    assert!(text.contains(line) && text.contains("thread hot (armed): 1 alarm, 0 records lost"), "{text}");
}

/// Each reason has its own budget, and the alarm says which one was overrun.
#[test]
fn amnesties_are_budgeted_by_reason() {
    let contract = contract();
    contract.set_amnesty_budget_of(Reason::Rollover, 2);
    let guard: Bare = contract.register_with(hot(), NoDetectors).unwrap();
    guard.arm();
    (0..10).for_each(|_| drop(guard.amnesty(Reason::Disconnect)));
    (0..2).for_each(|_| drop(guard.amnesty(Reason::Rollover)));
    guard.check();
    assert_eq!((guard.slot().alarms(), contract.amnesties().entered()), (0, 12), "twelve, none over");
    drop(guard.amnesty(Reason::Rollover));
    guard.check();
    assert_eq!((guard.slot().alarms(), contract.amnesties().over_budget()), (1, 1));
    let text = text(contract, &drained(contract));
    for part in [
        "violation: amnesty_overrun x1 on hot, 0 bytes, for rollover",
        "rollover: 3 of 2",
        "disconnect: 10 of 10",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

/// A budget without a limit, for several reasons at once, is no number that overflows.
#[test]
fn budgets_without_a_limit_are_written() {
    let contract = contract();
    contract.set_amnesty_budget(usize::MAX);
    let mut out = String::new();
    Report::new(contract).write_json(&mut out).unwrap();
    let read: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(read["amnesties"]["budget"], usize::MAX);
}

/// A reason whose index has no name raises the alarm of an overrun, and is in no count.
#[test]
fn an_amnesty_for_a_reason_without_a_name_is_an_overrun() {
    #[derive(Clone, Copy, Debug)]
    struct Numbered(usize);

    impl AmnestyReason for Numbered {
        const NAMES: &'static [&'static str] = &["only"];

        fn index(self) -> usize {
            self.0
        }
    }

    static CONTRACT: Contract<Numbered, 1> = Contract::new();
    CONTRACT.begin_init().unwrap();
    let guard: Guard<Numbered, NoDetectors> = CONTRACT.register_with(hot(), NoDetectors).unwrap();
    guard.arm();
    drop(guard.amnesty(Numbered(0)));
    guard.check();
    assert_eq!((guard.slot().alarms(), CONTRACT.amnesties().entered()), (0, 1));
    for (overruns, index) in [1, REASONS_MAX - 1, REASONS_MAX, usize::MAX].into_iter().enumerate() {
        drop(guard.amnesty(Numbered(index)));
        guard.check();
        assert_eq!(guard.slot().alarms(), overruns + 1, "{index}");
    }
    assert_eq!(CONTRACT.amnesties().entered(), 1, "of the reason that has a name");
}

/// A program without pools and without interposition passes with the detectors it asked for,
/// and the report names those it did not ask for.
#[test]
fn what_was_not_asked_for_is_not_missing() {
    let contract = contract();
    let guard =
        contract.register(HotThread { classes: ViolationSet::GROWTH, ..HotThread::new("hot") }).unwrap();
    guard.arm();
    guard.check();
    let report = Report::new(contract);
    let kernels = DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL | DetectorSet::MEMORY_CALLS;
    if guard.slot().live().contains(kernels) {
        assert_eq!((report.missing(), report.outcome()), (DetectorSet::empty(), Outcome::Passed));
    } else {
        tripoint_oracle::skipped!("the kernel refuses {:?}", kernels - guard.slot().live());
    }
    let optional = DetectorSet::FOREIGN_MALLOC | DetectorSet::WAITS;
    assert_eq!(report.not_asked_for(), DetectorSet::POOL_EVENTS | optional);
    // An arena reports an event on another thread: the hook is there, for all threads.
    std::thread::spawn(|| {
        use tripoint_core::{Event, EventHook};
        tripoint_contract::PoolEvents.event(Event::Grow { size: 1 });
        assert_eq!(current::count(ViolationClass::Growth), (1, 1));
    })
    .join()
    .unwrap();
    assert!(Report::new(contract).live().contains(DetectorSet::POOL_EVENTS));
    assert_eq!(Report::new(contract).not_asked_for(), optional);
}

/// A detector that is named as wanted and is not live is missing.
#[test]
fn what_was_asked_for_and_is_not_live_is_missing() {
    let contract = contract();
    let detectors = DetectorSet::FOREIGN_MALLOC;
    let guard: Bare = contract.register_with(HotThread { detectors, ..hot() }, NoDetectors).unwrap();
    guard.arm();
    assert_eq!(Report::new(contract).missing(), detectors);
    assert_eq!(Report::new(contract).outcome(), Outcome::PassedWithFewerDetectors);
}

/// A fill from memory that the pool has is normal use; a program that minds it says so.
#[test]
fn a_fill_is_a_violation_for_those_who_ask() {
    let contract = contract();
    let policies = Policies::all(Policy::Quarantine);
    let fill = |guard: &Bare| {
        guard.observe(Observation::new(ViolationClass::Fill, 64));
        guard.check();
        (guard.slot().alarms(), guard.slot().armed_tally(ViolationClass::Fill).count)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard: Bare = contract
                .register_with(HotThread { policies, ..HotThread::new("default") }, NoDetectors)
                .unwrap();
            guard.arm();
            assert_eq!(fill(&guard), (0, 1), "counted");
        });
        scope.spawn(|| {
            let classes = ViolationSet::STEADY | ViolationSet::FILL;
            let thread = HotThread { policies, classes, ..HotThread::new("strict") };
            let guard: Bare = contract.register_with(thread, NoDetectors).unwrap();
            guard.arm();
            assert_eq!(fill(&guard), (1, 1));
        });
    });
}
