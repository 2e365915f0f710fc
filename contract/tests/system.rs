//! The runtime's settings, the sentinel, and the report.
//!
//! Not with `interpose-malloc`: the tests' own allocations would be foreign.
#![cfg(not(feature = "interpose-malloc"))]
#![cfg(all(tripoint_kernel, feature = "symbols"))]

mod common;

use std::thread;

use common::{Reason, contract};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_contract::Warning;
use tripoint_contract::internal::{Kernel, LinuxKernel, validate_runtime_on};
use tripoint_contract::linux::validate_runtime;
use tripoint_contract::linux::{RuntimeItem, RuntimeOptions, Verdict};
use tripoint_contract::mock::{Calls, Failing};
use tripoint_contract::{
    Arenas, Budget, Contract, HotThread, MemorySteps, Name, NoDetectors, Observation, Phase, Policies,
    Policy, PoolEvents, Report, Route, Sentinel, Sizing, SteadyMemory, Symbols, ViolationClass, ViolationSet,
};
use tripoint_core::{Addr, Arena, Event, EventHook, PoolSizes};
use tripoint_oracle::forever;

const GOOD: &[(&str, &str)] = &[
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("/proc/sys/vm/overcommit_memory", "2\n"),
    ("/proc/self/limits", "Limit  Soft Limit\nMax locked memory         8388608  8388608  bytes\n"),
    ("/proc/sys/kernel/numa_balancing", "0\n"),
    ("/proc/swaps", "Filename Type Size Used Priority\n"),
    ("/proc/sys/vm/compact_unevictable_allowed", "0\n"),
    ("/proc/sys/vm/swappiness", "60\n"),
];

const BAD: &[(&str, &str)] = &[
    ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
    ("/proc/sys/vm/overcommit_memory", "0\n"),
    ("/proc/self/limits", "Max locked memory         65536  65536  bytes\n"),
    ("/proc/sys/kernel/numa_balancing", "1\n"),
    ("/proc/sys/vm/compact_unevictable_allowed", "1\n"),
    ("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n"),
    ("/proc/sys/vm/swappiness", "60\n"),
    ("/proc/sys/kernel/perf_event_paranoid", "3\n"),
];

/// The settings that the files above set.
const FILED: [RuntimeItem; 7] = [
    RuntimeItem::HugePages,
    RuntimeItem::Overcommit,
    RuntimeItem::LockedMemory,
    RuntimeItem::NumaBalancing,
    RuntimeItem::Swap,
    RuntimeItem::Compaction,
    RuntimeItem::PerfEvents,
];

#[test]
fn good_settings_are_good_and_bad_ones_as_bad_as_configured() {
    let options = RuntimeOptions { fatal: &[RuntimeItem::Swap], locked_memory: 1 << 20 };
    let good = Failing::new(LinuxKernel, Calls::empty()).with_files(GOOD);
    let bad = Failing::new(LinuxKernel, Calls::OPEN_FAULT_EVENT).with_files(BAD);
    let has_perf = LinuxKernel.try_fault_event().is_ok();
    let (good, bad) = (validate_runtime_on(&good, options), validate_runtime_on(&bad, options));
    assert_eq!(good.findings.iter().map(|finding| finding.item).collect::<Vec<_>>(), RuntimeItem::ALL);
    for item in FILED {
        let verdict = |findings: &[tripoint_contract::linux::Finding]| {
            findings.iter().find(|finding| finding.item == item).unwrap().verdict
        };
        let is_good = verdict(&good.findings) == Verdict::Good;
        assert!(is_good || item == RuntimeItem::PerfEvents && !has_perf, "{item:?}");
        let expected = if item == RuntimeItem::Swap { Verdict::Fatal } else { Verdict::Advisory };
        assert_eq!(verdict(&bad.findings), expected, "{item:?}");
    }
    assert_eq!(bad.verdict(), Verdict::Fatal);
    let text = bad.to_string();
    assert!(text.contains("swap                    fatal     1 areas, swappiness 60 (turn"));
    assert!(
        text.contains("perf_events             advisory  refused with code 1, paranoid 3 (allow"),
        "{text}"
    );
}

/// The environment configures the process's allocator, so this has a process of its own.
#[test]
fn only_the_right_tunables_are_good() {
    const BOTH: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=0x40000000";
    for (variables, good, value) in [
        (&[][..], false, "default"),
        (&[("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")][..], false, "default"),
        (&[("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0")][..], false, "glibc.malloc.mmap_max=0"),
        (
            &[("GLIBC_TUNABLES", BOTH)][..],
            true,
            "glibc.malloc.mmap_max=0 glibc.malloc.trim_threshold=0x40000000",
        ),
        (
            &[("MALLOC_MMAP_MAX_", "0"), ("MALLOC_TRIM_THRESHOLD_", "-1")][..],
            true,
            "glibc.malloc.mmap_max=0 ",
        ),
        (
            &[("MALLOC_MMAP_MAX_", "1"), ("MALLOC_TRIM_THRESHOLD_", "-1")][..],
            false,
            "glibc.malloc.mmap_max=1 ",
        ),
    ] {
        const CHILD: &str = "TRIPOINT_TUNABLES_CHILD";
        if std::env::var_os(CHILD).is_some() {
            let report = validate_runtime(RuntimeOptions::default());
            let found = report.findings.iter().find(|finding| finding.item == RuntimeItem::AllocatorTunables);
            println!("{:?} {}", found.unwrap().verdict, found.unwrap().value);
            return;
        }
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "only_the_right_tunables_are_good", "--nocapture"]).env(CHILD, "1");
        child.env_remove("GLIBC_TUNABLES").envs(variables.iter().copied());
        let said = String::from_utf8(child.output().unwrap().stdout).unwrap();
        let verdict = if good { Verdict::Good } else { Verdict::Advisory };
        assert!(said.contains(&format!("{verdict:?} {value}")), "{variables:?}: {said}");
    }
}

/// Init looks, and the report says what it found. A setting that the program cannot do without
/// fails Init.
#[test]
fn init_looks_at_the_system_and_the_report_says_so() {
    let contract = contract();
    let runtime = contract.runtime().unwrap();
    assert_eq!(runtime.findings.len(), RuntimeItem::ALL.len());
    let mut text = String::new();
    Report::new(contract).write_json(&mut text).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["runtime"].as_array().unwrap().len(), RuntimeItem::ALL.len());
    let shown = Report::new(contract).to_string();
    for finding in &runtime.findings {
        assert_eq!(
            shown.contains(&format!(
                "\nadvice: {} ({} is {})\n",
                finding.advice,
                finding.item.name(),
                finding.value
            )),
            finding.verdict != Verdict::Good,
            "{shown}"
        );
    }
    // More memory than there is: no process may lock that much, unless there is no limit.
    let demanding: &'static Contract<Reason, 1> = forever(Contract::new());
    let options = RuntimeOptions { fatal: &RuntimeItem::ALL, locked_memory: u64::MAX };
    let answer = demanding.begin_init_with(options);
    let fatal = demanding.runtime().unwrap().verdict() == Verdict::Fatal;
    assert_eq!(answer.is_err(), fatal);
    assert_eq!(demanding.phase(), if fatal { Phase::Boot } else { Phase::Init });
    let required =
        Report::new(demanding).to_string().contains("\nrequired: raise the limit of locked memory (");
    assert_eq!(required, fatal);
    if fatal {
        assert_eq!(demanding.begin_init(), Ok(()), "no setting is fatal unless it is named");
    }
}

#[test]
fn what_cannot_be_read_is_unknown_and_not_good() {
    let blind = Failing::new(LinuxKernel, Calls::READ);
    let report = validate_runtime_on(&blind, RuntimeOptions::default());
    let unknown: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.value == "unknown")
        .map(|finding| finding.verdict)
        .collect();
    assert!(unknown.len() >= 5);
    assert!(unknown.iter().all(|&verdict| verdict == Verdict::Advisory));
}

#[test]
fn this_system_can_be_looked_at() {
    let report = validate_runtime(RuntimeOptions::default());
    let mut json = String::new();
    report.write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), RuntimeItem::ALL.len());
    let binding = json.as_array().unwrap().iter().find(|found| found["item"] == "lazy_binding").unwrap();
    // Rust links position-independent programs with -z now.
    assert!(binding["value"].as_str().unwrap().starts_with("now"), "{json}");
}

#[test]
fn the_sentinel_sees_arenas_grow_and_cold_threads_overspend() {
    let contract = contract();
    let arena = ArenaVm::create(ArenaVmOptions { reserve: 1 << 30, ..Default::default() }).unwrap();
    let cold = contract.register_cold("cold", Budget::new(2, 100, 1_000)).unwrap();
    let arenas: [&dyn Arena; 1] = [&arena];
    let mut sentinel = Sentinel::new(contract, &arenas);
    let mut look = |now| {
        let mut warnings = Vec::new();
        sentinel.poll(now, |warning| warnings.push(warning));
        let of_others = |warning: &Warning| {
            matches!(warning, Warning::ResidentGrew { .. } | Warning::HeapGrew { .. } | Warning::Faulted(_))
        };
        warnings.retain(|warning| !of_others(warning));
        warnings
    };
    assert_eq!(look(0), []);
    let pool = arena.register().unwrap();
    let _ = arena.alloc_tracts(1, pool).unwrap();
    let grew = look(10);
    assert!(matches!(grew[..], [Warning::ArenaGrew { arena: 0, reading }] if reading.growth > 0), "{grew:?}");
    assert_eq!(look(20), []);
    let spend = |bytes| cold.slot().observe(Observation::new(ViolationClass::Fill, bytes), || unreachable!());
    (0..2).for_each(|_| spend(10));
    assert_eq!(look(30), [], "within the budget");
    spend(10);
    let over = look(40);
    assert!(matches!(over[..], [Warning::OverBudget { events: 3, bytes: 30, .. }]), "{over:?}");
    assert!(over[0].to_string().contains("cold thread cold"));
    assert_eq!(look(50), [], "each overspending is told once");
    spend(101);
    assert!(matches!(look(60)[..], [Warning::OverBudget { events: 1, bytes: 101, .. }]));
    (0..2).for_each(|_| spend(1));
    assert_eq!(look(1_100), [], "the period ends");
    (0..2).for_each(|_| spend(1));
    assert_eq!(look(1_200), []);
    let last = sentinel.last();
    assert!(last.time == 1_200 && last.faults.is_some() && last.resident.is_some());
}

/// What a sentinel warns of that other tests of this process do not cause.
fn warnings<const THREADS: usize>(sentinel: &mut Sentinel<'_, Reason, THREADS>, now: u64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    sentinel.poll(now, |warning| warnings.push(warning));
    warnings.retain(|warning| matches!(warning, Warning::OverBudget { .. } | Warning::Collected { .. }));
    warnings
}

/// As a heap reports it, on the thread that collects.
fn collect() {
    let heap = Addr::new(0x4ea9);
    PoolEvents.event(Event::EndCollection { heap, examined: 9, kept: 9, freed: 1 });
}

/// In SteadyState, and only there. What registered threads do is theirs: an alarm, or a matter of their budget.
#[test]
fn the_sentinel_sees_collections_of_threads_that_are_not_registered() {
    let contract = contract();
    let hot = HotThread { policies: Policies::all(Policy::Quarantine), ..HotThread::new("hot") };
    let guard = contract.register_with(hot, NoDetectors).unwrap();
    contract.begin_warmup().unwrap();
    let elsewhere = |times: usize| {
        thread::scope(|scope| scope.spawn(|| (0..times).for_each(|_| collect())).join()).unwrap();
    };
    let mut sentinel = Sentinel::new(contract, &[]);
    elsewhere(2);
    assert_eq!(warnings(&mut sentinel, 0), [], "in Warmup");
    elsewhere(1);
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    assert_eq!(warnings(&mut sentinel, 1), [], "perhaps in Warmup");
    elsewhere(5);
    let collected = warnings(&mut sentinel, 2);
    assert_eq!(collected, [Warning::Collected { collections: 5 }]);
    assert!(collected[0].to_string().contains("collected heaps 5 times: register them"), "{}", collected[0]);
    assert_eq!(warnings(&mut sentinel, 3), [], "told once");
    collect();
    assert_eq!(warnings(&mut sentinel, 4), [], "a hot thread");
    assert_eq!(guard.slot().tally(ViolationClass::Collection).count, 1);
    let mut late = Sentinel::new(contract, &[]);
    elsewhere(1);
    assert_eq!(warnings(&mut late, 5), [Warning::Collected { collections: 1 }], "from its beginning on");
}

/// Classes with a limit of their own, and all others together.
#[test]
fn cold_threads_have_budgets_by_class() {
    const MINUTE: u64 = 60_000_000_000;
    let contract = contract();
    let cold = contract.register_cold("cold", Budget::default()).unwrap();
    assert_eq!(cold.slot().budget(), Budget::default());
    let mut sentinel = Sentinel::new(contract, &[]);
    let spend = |class, bytes| cold.slot().observe(Observation::new(class, bytes), || unreachable!());
    let (none, alloc, fill) = (ViolationClass::Collection, ViolationClass::Alloc, ViolationClass::Fill);
    let over = |class, events, bytes| Warning::OverBudget { thread: Name::new("cold"), class, events, bytes };
    assert_eq!(warnings(&mut sentinel, 0), []);
    spend(alloc, 1 << 30);
    assert_eq!(warnings(&mut sentinel, 1), [], "one a minute");
    spend(none, 7);
    let collected = warnings(&mut sentinel, 2);
    assert_eq!(collected, [over(Some(none), 1, 7)], "no collection ever");
    assert!(collected[0].to_string().contains("over its budget of class collection: 1 events"));
    spend(fill, 2);
    assert_eq!(warnings(&mut sentinel, 3), [over(None, 2, (1 << 30) + 2)], "a second one in that minute");
    spend(fill, 2);
    assert_eq!(warnings(&mut sentinel, 3 + MINUTE), [], "its minute ends");
    spend(fill, 2);
    spend(none, 1);
    spend(none, 1);
    assert_eq!(warnings(&mut sentinel, 4 + MINUTE), [over(Some(none), 2, 2)]);
    assert_eq!(warnings(&mut sentinel, 4 + 2 * MINUTE), []);
    drop(cold);

    // One class is limited more, and another less, than all others together.
    let budget = Budget::new(2, 100, 10).with(fill, 1).with(alloc, 50);
    assert_eq!(budget.with(fill, usize::MAX).of(fill), None);
    let cold = contract.register_cold("cold", budget).unwrap();
    let spend = |class, times| {
        (0..times).for_each(|_| cold.slot().observe(Observation::new(class, 1), || unreachable!()));
    };
    assert_eq!(warnings(&mut sentinel, 1_000 * MINUTE), []);
    spend(alloc, 50);
    spend(fill, 1);
    spend(none, 2);
    assert_eq!(warnings(&mut sentinel, 1_000 * MINUTE + 1), []);
    spend(fill, 1);
    assert_eq!(warnings(&mut sentinel, 1_000 * MINUTE + 2), [over(Some(fill), 2, 2)]);
    spend(none, 1);
    assert_eq!(warnings(&mut sentinel, 1_000 * MINUTE + 3), [over(None, 3, 3)]);
    spend(alloc, 1);
    assert_eq!(warnings(&mut sentinel, 1_000 * MINUTE + 4), [over(Some(alloc), 51, 51)]);
}

#[test]
fn the_sentinel_works_if_the_kernel_refuses_to_answer() {
    let contract = contract();
    let blind = Failing::new(LinuxKernel, Calls::READ | Calls::FAULTS);
    let mut sentinel = Sentinel::new_on(blind, contract, &[]);
    sentinel.poll(1, |warning| panic!("{warning}"));
    assert_eq!((sentinel.last().faults, sentinel.last().resident), (None, None));
}

#[test]
fn resident_memory_that_stays_is_read_and_not_warned_of() {
    const BEFORE: &[(&str, &str)] = &[("/proc/self/statm", "1000 500 1 1 0 1 0\n")];
    let contract = contract();
    let kernel = Failing::new(LinuxKernel, Calls::empty()).with_files(BEFORE);
    let mut sentinel = Sentinel::new_on(kernel, contract, &[]);
    let is_resident = |warning: &Warning| matches!(warning, Warning::ResidentGrew { .. });
    (1..4).for_each(|now| sentinel.poll(now, |warning| assert!(!is_resident(&warning), "{warning}")));
    assert_eq!(sentinel.last().resident, Some(500 * 4096));
}

/// Memory that is really there: the bound to the byte is `linux::sentinel`'s own test.
#[test]
fn memory_that_grows_is_warned_of() {
    const GROWTH: usize = 64 << 20;
    let Some(child) = common::in_child("memory_that_grows_is_warned_of") else {
        return grow(GROWTH);
    };
    assert!(child.status.success(), "{child:?}");
}

/// In a process of its own, in which nothing else grows.
fn grow(growth: usize) {
    let mut sentinel = Sentinel::new(contract(), &[]);
    sentinel.poll(1, |warning| panic!("{warning}"));
    let first = sentinel.last().resident.unwrap();
    let grown = core::hint::black_box(vec![1_u8; growth]);
    let mut warnings = Vec::new();
    sentinel.poll(2, |warning| warnings.push(warning));
    drop(grown);
    let [Warning::ResidentGrew { from, to }, ref rest @ ..] = warnings[..] else { panic!("{warnings:?}") };
    assert_eq!((from, Some(to)), (first, sentinel.last().resident));
    assert!(to - from > growth / 2, "{from} {to}");
    let [ref heap @ .., Warning::Faulted(faults)] = *rest else { panic!("{warnings:?}") };
    assert!(faults.minor >= (growth / (2 << 20)) as u64, "huge pages at most: {faults:?}");
    // Only glibc reports what it has in use.
    if sentinel.last().heap_in_use.is_some() {
        let [Warning::HeapGrew { from, to }] = *heap else { panic!("{warnings:?}") };
        assert!(to - from >= growth, "{from} {to}");
    }
    let mut quiet = Vec::new();
    sentinel.poll(3, |warning| quiet.push(warning));
    assert_eq!(quiet, [], "what does not grow on is told once");
}

#[test]
fn a_steady_state_without_hot_threads_proves_nothing() {
    let contract = contract();
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    assert_eq!(Report::new(contract).outcome().name(), "not_armed");
}

#[test]
fn the_report_names_the_detectors_that_were_live() {
    let contract = contract();
    let policies = Policies::all(Policy::Quarantine);
    let classes = ViolationSet::all();
    let thread = HotThread { policies, classes, ..HotThread::new("parser \"1\"") };
    let guard = contract.register_with::<NoDetectors>(thread, NoDetectors).unwrap();
    assert_eq!(Report::new(contract).outcome().name(), "not_armed");
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    assert_eq!(Report::new(contract).outcome().name(), "passed_with_fewer_detectors");
    {
        let _amnesty = guard.amnesty(Reason::Rollover);
        guard.observe(Observation::new(ViolationClass::Growth, 4096));
    }
    guard.observe(Observation::new(ViolationClass::Fill, 64));
    guard.check();
    let records = common::records(contract);
    let arena = ArenaVm::create(ArenaVmOptions { reserve: 1 << 30, ..Default::default() }).unwrap();
    let pool = arena.register().unwrap();
    let _ = arena.alloc_tracts(200_000, pool).unwrap();
    let pools = [("levels", PoolSizes { high_water: 131_072, ..Default::default() })];
    let routes = [Route::with_minimum("tick", 3)];
    let report = Report {
        records: &records,
        routes: &routes,
        sizing: Some(Sizing::of(&arena, &pools)),
        symbols: &Symbols,
        ..Report::new(contract)
    };
    let mut text = String::new();
    report.write_json(&mut text).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["outcome"], "violated");
    assert_eq!(json["armed"], true);
    assert_eq!(json["live_detectors"], serde_json::json!([]));
    assert_eq!(json["missing_detectors"].as_array().unwrap().len(), 4);
    assert_eq!(json["not_asked_for"], serde_json::json!(["pool_events", "foreign_malloc", "waits"]));
    assert_eq!(json["threads"][0]["name"], "parser \"1\"");
    assert_eq!(json["threads"][0]["events"]["growth"]["excused"], 1);
    let kinds: Vec<_> = (0..3).map(|index| json["violations"][index]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["excused", "violation", "alarm"]);
    assert_eq!(json["violations"][0]["reason"], "rollover");
    assert!(json["violations"][1]["site"].as_str().unwrap().contains("system.rs:"), "{json:#}");
    assert_eq!(json["amnesties"]["reasons"]["rollover"], 1);
    assert_eq!(json["routes"][0]["minimum"], 3);
    assert_eq!(json["warmup_rounds"], 0);
    assert_eq!(json["sizing"]["pools"][0]["extend"], 131_072);
    assert!(json["sizing"]["commit_limit"].as_u64().unwrap() >= 200_000);
    let text = report.to_string();
    for part in [
        "contract: violated in SteadyState",
        "missing detectors: allocator",
        "fill x1 on parser",
        "rollover: 1",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn arenas_do_every_step_of_the_preparation() {
    const SIZE: usize = 4 << 20;
    let options =
        ArenaVmOptions { reserve: 1 << 30, huge_pages: true, spare_share: 100, ..Default::default() };
    let arena = ArenaVm::create(options).unwrap();
    let pool = arena.register().unwrap();
    let kept = arena.alloc_tracts(SIZE, pool).unwrap();
    let spare = arena.alloc_tracts(SIZE, pool).unwrap();
    // SAFETY: all of the tracts just allocated; nothing uses them.
    unsafe { arena.free_tracts(spare, pool) };
    let arenas: [&dyn Arena; 1] = [&arena];
    let memory = Arenas::new(&arenas).with_locked_process();
    let before = arena.sizes().committed;
    memory.trim().unwrap();
    assert!(arena.sizes().committed <= before - SIZE, "what is spare goes back");
    memory.merge().unwrap();
    memory.freeze().unwrap();
    assert!(arena.is_frozen());
    memory.prefault().unwrap();
    let faults = || LinuxKernel.thread_faults().unwrap().minor;
    let before = faults();
    // SAFETY: the tracts just given.
    (0..SIZE).step_by(4096).for_each(|at| unsafe { kept.base().as_ptr().add(at).write_volatile(1) });
    // The test's own code may fault, but no page of the tracts does.
    assert!(faults() - before < 100, "{}", faults() - before);
    memory.no_fork().unwrap();
    // In a child it is not there: as the kernel says of the mapping.
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let ours = maps.split("VmFlags:").filter(|part| part.contains(&format!("{:x}-", kept.base().addr())));
    let _ = ours;
    assert!(
        maps.lines().any(|line| line.starts_with("VmFlags:") && line.contains(" dc ")),
        "not copied on fork"
    );
    let mut missed = memory.missed();
    // Not every system has huge pages, and locks as much.
    missed.remove(MemorySteps::MERGE | MemorySteps::LOCK);
    assert_eq!(missed, MemorySteps::empty());
    memory.thaw();
    assert!(!arena.is_frozen());
}

/// An arena to which the system refuses everything.
#[test]
fn what_the_memory_misses_is_in_the_report() {
    let contract = contract();
    let platform = tripoint_arena_vm::Portable;
    let options = ArenaVmOptions { reserve: 64 << 20, reserve_floor: 1 << 20, ..Default::default() };
    let arena = ArenaVm::create_on(platform, options).unwrap();
    let arenas: [&dyn Arena; 1] = [&arena];
    let memory = Arenas::new(&arenas);
    memory.no_fork().unwrap();
    assert_eq!(memory.missed(), MemorySteps::NO_FORK);
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&memory).unwrap();
    assert_eq!(contract.memory_missed(), MemorySteps::NO_FORK);
    assert!(Report::new(contract).to_string().contains("memory step not done: no_fork"));
    let mut text = String::new();
    Report::new(contract).write_json(&mut text).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["missing_memory_steps"], serde_json::json!(["no_fork"]));
}
