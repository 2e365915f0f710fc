//! Each detector with a positive and a negative control, all at the same time in
//! one process: whatever one test does, no other sees it.
//!
//! Where the kernel refuses a detector, its tests say so and check that the
//! detector is reported as not live.
//! (design/contract.md `.req.exact`, `.req.live`, `.req.alone`, `.req.raise`.)
#![cfg(all(feature = "linux", feature = "symbols", target_os = "linux", not(miri)))]

mod common;

use core::hint::black_box;
use core::mem::MaybeUninit;
use std::sync::mpsc;
use std::thread;

use common::{Reason, armed, contract, of_kind, records};
use tripoint_ap::AllocationPoint;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_contract::RECORDS_PER_TURN;
use tripoint_contract::internal::{Calls, Failing};
use tripoint_contract::internal::{Native, ThreadDetectors};
use tripoint_contract::{
    ClassSet, Contract, ContractAllocator, DetectorSet, Guard, HotThread, Mode, Observation, Policies,
    Policy, PoolEvents, Progress, Record, RecordKind, Report, Slot, Symbols, ViolationClass, Warmup,
    WarmupOptions, current,
};
use tripoint_core::{Arena, Error};
use tripoint_pools::{Mvff, MvffOptions};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

static POOL_EVENTS: PoolEvents = PoolEvents;

const PAGE: usize = 4096;

/// Runs a test on a thread of its own, as a hot thread is, so that filters and
/// events end with it.
fn on_hot_thread(test: impl FnOnce() + Send + 'static) {
    if let Err(panic) = thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

/// What a detector sees.
const SEEN_BY: [(DetectorSet, ClassSet); 6] = [
    (DetectorSet::ALLOCATOR, ClassSet::ALLOC.union(ClassSet::REALLOC).union(ClassSet::DEALLOC)),
    (DetectorSet::POOL_EVENTS, ClassSet::FILL.union(ClassSet::GROWTH)),
    (DetectorSet::FAULT_TRAP, ClassSet::MINOR_FAULT.union(ClassSet::MAJOR_FAULT)),
    (DetectorSet::FAULT_POLL, ClassSet::MINOR_FAULT.union(ClassSet::MAJOR_FAULT)),
    (DetectorSet::MEMORY_CALLS, ClassSet::MEMORY_CALL),
    (DetectorSet::FOREIGN_MALLOC, ClassSet::FOREIGN_MALLOC),
];

/// A hot thread with these detectors, held to what they see (the test's own
/// bookkeeping is no part of it), which quarantines.
fn hot(detectors: DetectorSet) -> HotThread<'static> {
    let seen = SEEN_BY.iter().filter(|(detector, _)| detectors.contains(*detector));
    let classes = seen.fold(ClassSet::empty(), |all, (_, classes)| all | *classes);
    let policies = Policies::all(Policy::Quarantine);
    HotThread { detectors, classes, policies, ..HotThread::new("hot") }
}

/// Whether a detector is live; says so where the kernel refuses it.
fn is_live(slot: &Slot, detector: DetectorSet) -> bool {
    let live = slot.live().contains(detector);
    if !live {
        eprintln!("SKIPPED: {detector:?} is refused here");
    }
    live
}

fn json(contract: &'static Contract<Reason, 4>, records: &[Record]) -> serde_json::Value {
    let mut report = Report::new(contract);
    report.records = records;
    report.symbols = &Symbols;
    let mut text = String::new();
    report.write_json(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Checks that `cause`, and nothing before it, is caught as `class`, with a site
/// in the function of this file whose name has `function` in it.
fn caught_as(
    class: ViolationClass,
    detectors: DetectorSet,
    innocent: impl Fn(),
    cause: impl Fn(),
    function: &'static str,
) {
    let contract = contract();
    let guard = armed(contract, hot(detectors));
    if !is_live(guard.slot(), detectors) {
        assert!(Report::new(contract).missing().contains(detectors));
        return;
    }
    innocent();
    guard.check();
    assert_eq!(of_kind(&records(contract), RecordKind::Alarm), [], "the negative control");
    cause();
    guard.check();
    let records = records(contract);
    let alarms = of_kind(&records, RecordKind::Alarm);
    let alarm = alarms.iter().find(|alarm| alarm.class == class);
    assert!(alarm.is_some_and(|alarm| alarm.count >= 1), "{class} was not caught: {records:?}");
    let events: Vec<_> = records
        .iter()
        .filter(|record| record.class == class && record.kind == RecordKind::Violation)
        .copied()
        .collect();
    assert!(!events.is_empty());
    let report = json(contract, &events);
    let site = report["violations"][0]["site"].as_str().unwrap();
    assert!(site.contains(function) && site.contains("detectors.rs:"), "{class} at {site}: {report:#}");
}

#[inline(never)]
fn culprit_alloc() -> Box<u64> {
    black_box(Box::new(7))
}

#[test]
fn alloc_and_dealloc_are_caught() {
    on_hot_thread(|| {
        let cause = || drop(black_box(culprit_alloc()));
        caught_as(ViolationClass::Alloc, DetectorSet::ALLOCATOR, || {}, cause, "culprit_alloc");
    });
    on_hot_thread(|| {
        let kept = core::cell::Cell::new(Some(Box::new(7_u64)));
        #[inline(never)]
        fn culprit_dealloc(kept: &core::cell::Cell<Option<Box<u64>>>) {
            drop(black_box(kept.take()));
        }
        let cause = || culprit_dealloc(&kept);
        caught_as(ViolationClass::Dealloc, DetectorSet::ALLOCATOR, || {}, cause, "culprit_dealloc");
    });
}

/// What a warm-up costs is counted too, exactly, and calls nobody.
#[test]
fn events_before_arming_are_counted_and_no_more() {
    on_hot_thread(|| {
        let contract = contract();
        let guard = contract.register(hot(DetectorSet::ALLOCATOR)).unwrap();
        let tally = |class| guard.slot().tally(class);
        let before = [ViolationClass::Alloc, ViolationClass::Dealloc].map(tally);
        (0..100).for_each(|_| drop(black_box(Box::new([0_u8; 24]))));
        let after = [ViolationClass::Alloc, ViolationClass::Dealloc].map(tally);
        for (before, after) in before.into_iter().zip(after) {
            assert_eq!((after.count - before.count, after.bytes - before.bytes), (100, 2_400));
            assert_eq!(after.excused, before.excused);
        }
        {
            let _amnesty = guard.amnesty(Reason::Disconnect);
            drop(black_box(Box::new(0_u64)));
        }
        assert_eq!(tally(ViolationClass::Alloc).excused, before[0].excused + 1);
        guard.check();
        assert_eq!((guard.slot().alarms(), guard.slot().overlapped()), (0, 0));
    });
}

#[test]
fn realloc_is_caught_and_told_from_alloc() {
    on_hot_thread(|| {
        let grown = core::cell::RefCell::new(vec![1_u8; 16]);
        #[inline(never)]
        fn culprit_realloc(grown: &core::cell::RefCell<Vec<u8>>) {
            grown.borrow_mut().reserve_exact(common::opaque(100));
        }
        let cause = || culprit_realloc(&grown);
        let push_in_room = || {
            grown.borrow_mut().pop();
            grown.borrow_mut().push(1);
        };
        caught_as(ViolationClass::Realloc, DetectorSet::ALLOCATOR, push_in_room, cause, "culprit_realloc");
    });
}

#[test]
fn another_threads_allocation_is_nobodys() {
    on_hot_thread(|| {
        let contract = contract();
        let (go, wait) = mpsc::channel::<()>();
        let (done, finished) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            wait.recv().unwrap();
            for size in 0..1_000 {
                drop(black_box(vec![0_u8; size]));
            }
            done.send(()).unwrap();
        });
        // Both ends of the channels have done their lazy work.
        let guard = armed(contract, HotThread { classes: ClassSet::all(), ..hot(DetectorSet::ALLOCATOR) });
        drop(go);
        let _ = finished.recv();
        // Receiving parks and may allocate on this thread; that is this thread's.
        let own = guard.slot().tally(ViolationClass::Alloc).count;
        assert!(own < 1_000);
        drop(guard);
        let _ = other.join();
    });
}

fn arena() -> ArenaVm {
    let options = ArenaVmOptions { event_hook: Some(&POOL_EVENTS), reserve: 1 << 30, ..Default::default() };
    ArenaVm::create(options).unwrap()
}

#[test]
fn fills_are_caught() {
    on_hot_thread(|| {
        let arena = arena();
        let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
        let point = core::cell::RefCell::new(AllocationPoint::create(&pool).unwrap());
        #[inline(never)]
        fn culprit_fill(point: &mut AllocationPoint<'_, Mvff<&ArenaVm>>) {
            point.empty();
            black_box(point.alloc([0_u64; 4]).unwrap());
        }
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::POOL_EVENTS));
        // The detector is live from the first event on.
        culprit_fill(&mut point.borrow_mut());
        guard.check();
        let _ = records(contract);
        black_box(point.borrow_mut().alloc([0_u64; 4]).unwrap());
        guard.check();
        assert_eq!(records(contract), [], "allocating in the buffer is no fill");
        culprit_fill(&mut point.borrow_mut());
        guard.check();
        let records = records(contract);
        assert_eq!(of_kind(&records, RecordKind::Alarm).len(), 1);
        let report = json(contract, &of_kind(&records, RecordKind::Violation));
        let site = report["violations"][0]["site"].as_str().unwrap();
        assert!(site.contains("culprit_fill"), "{site}: {report:#}");
        assert!(guard.slot().live().contains(DetectorSet::POOL_EVENTS));
    });
}

#[test]
fn growth_and_refused_growth_are_caught() {
    on_hot_thread(|| {
        let arena = arena();
        let pool = arena.register().unwrap();
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::POOL_EVENTS));
        let _ = arena.alloc_tracts(100_000, pool).unwrap();
        guard.check();
        arena.freeze();
        guard.check();
        let grown = of_kind(&records(contract), RecordKind::Alarm);
        assert_eq!(grown.len(), 1);
        assert_eq!((grown[0].class, grown[0].bytes >= 100_000), (ViolationClass::Growth, true));
        assert_eq!(arena.alloc_tracts(10_000_000, pool).err(), Some(Error::Frozen));
        guard.check();
        let refused = of_kind(&records(contract), RecordKind::Alarm);
        assert_eq!((refused[0].class, refused[0].count), (ViolationClass::Growth, 1));
    });
}

/// Fresh pages of one's own.
struct Pages {
    base: *mut u8,
    count: usize,
}

impl Pages {
    fn map(count: usize) -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), count * PAGE, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        Self { base: base.cast(), count }
    }

    #[inline(never)]
    fn culprit_touch(&self) {
        for page in 0..self.count {
            // SAFETY: the first byte of a page of the mapping, ours alone.
            unsafe { self.base.add(page * PAGE).write_volatile(1) };
        }
    }

    fn contains(&self, fault: &Record) -> bool {
        (self.base.addr()..self.base.addr() + self.count * PAGE).contains(&fault.address)
    }

    fn advise(&self, advice: i32) {
        // SAFETY: the whole mapping, ours alone.
        assert_eq!(unsafe { libc::madvise(self.base.cast(), self.count * PAGE, advice) }, 0);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, not used any more.
        unsafe { libc::munmap(self.base.cast(), self.count * PAGE) };
    }
}

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

/// Without perf events faults are polled, and the report says so.
#[test]
fn faults_are_polled_where_they_cannot_trap() {
    on_hot_thread(|| {
        let contract = contract();
        let wanted = DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL;
        let kernel = Failing::new(Native, Calls::OPEN_FAULT_EVENT);
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
        assert_eq!(guard.slot().alarms(), 0, "nobody has asked yet");
        let request = contract.request_poll();
        guard.check();
        assert!(contract.have_polled(request));
        guard.check();
        let alarms = of_kind(&records(contract), RecordKind::Alarm);
        assert_eq!((alarms[0].class, alarms[0].count), (ViolationClass::MinorFault, 16));
    });
}

/// Whether the error names the core that the thread was to be bound to.
fn is_not_bound(error: Option<Error>) -> bool {
    matches!(error, Some(Error::Parameter(why)) if why.contains("HotThread::core"))
}

/// Every refusal of the kernel leaves its detector not live, and all else working.
#[test]
fn refusals_of_the_kernel_are_reported() {
    let every = DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL | DetectorSet::MEMORY_CALLS;
    for (refused, lost) in [
        (Calls::FAULTS, DetectorSet::FAULT_POLL),
        (Calls::HANDLE_TRAPS, DetectorSet::FAULT_TRAP),
        (Calls::OPEN_FAULT_EVENT, DetectorSet::FAULT_TRAP),
        (Calls::INSTALL_FILTER, DetectorSet::MEMORY_CALLS),
        (Calls::TOUCH, DetectorSet::FAULT_TRAP | DetectorSet::MEMORY_CALLS),
    ] {
        on_hot_thread(move || {
            let contract = contract();
            let detectors = ThreadDetectors::new(Failing::new(Native, refused), every);
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
        let detectors = ThreadDetectors::new(Failing::new(Native, Calls::PIN), every);
        assert!(is_not_bound(contract().register_with(thread, detectors).err()));
        let thread = HotThread { core: Some(usize::MAX), ..hot(DetectorSet::empty()) };
        assert!(is_not_bound(contract().register(thread).err()));
        let thread = HotThread { core: Some(0), ..hot(DetectorSet::empty()) };
        assert!(contract().register(thread).is_ok());
    });
}

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
        assert!(site.contains("detectors.rs:"), "{site}");
    });
}

/// Where the thread cannot be asked where it is, the calls are caught all the same.
#[test]
fn memory_calls_are_caught_without_a_site_too() {
    on_hot_thread(|| {
        let contract = contract();
        let wanted = DetectorSet::MEMORY_CALLS;
        let kernel = Failing::new(Native, Calls::SEND_TRAP);
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
        let (asked, calls) = (|| slot.call_site().0, || slot.tally(ViolationClass::MemoryCall).count);
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

/// While a child lives, what was prefaulted faults again; unless it was kept out
/// of the child.
#[test]
fn a_fork_makes_prefaulted_pages_fault_again() {
    on_hot_thread(|| {
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
    });
}

/// What the handler of SIGUSR1 causes.
extern "C" fn on_signal(_signal: i32) {
    let seen = Observation { count: 1, ..Observation::new(ViolationClass::Growth, 1) };
    current::observe(seen);
}

fn handle_signals() {
    let handler: extern "C" fn(i32) = on_signal;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
}

/// A signal handler that itself causes an event, exactly while the thread writes
/// another one down.
#[test]
fn an_event_within_a_raise_overlaps_and_is_counted() {
    on_hot_thread(|| {
        handle_signals();
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::POOL_EVENTS));
        for number in 1..=10 {
            let seen = Observation::new(ViolationClass::Growth, 1);
            guard.slot().observe(seen, || {
                // SAFETY: the signal is handled.
                unsafe { libc::raise(libc::SIGUSR1) };
                tripoint_contract::Evidence::NONE
            });
            assert!(!guard.slot().is_busy());
            assert_eq!(guard.slot().tally(ViolationClass::Growth).count, number);
            assert_eq!(guard.slot().overlapped(), number);
        }
        guard.check();
        assert_eq!(of_kind(&records(contract), RecordKind::Violation).len(), 10);
    });
}

/// Signals at any time, while the thread writes events down and raises alarms:
/// nothing is torn, nothing waits, and every event is in one count.
#[test]
fn signals_at_any_time_are_harmless() {
    on_hot_thread(|| {
        handle_signals();
        let contract = contract();
        let both = DetectorSet::ALLOCATOR | DetectorSet::POOL_EVENTS;
        let guard = armed(contract, hot(both));
        let counted =
            || ViolationClass::ALL.map(|class| guard.slot().tally(class).count).iter().sum::<usize>();
        let caused = || ViolationClass::ALL.map(|class| current::count(class).0).iter().sum::<usize>();
        // SAFETY: names the calling thread, which waits for the sender.
        let this_thread = unsafe { libc::pthread_self() };
        let before = caused() - counted();
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                for _ in 0..500 {
                    // SAFETY: the thread waits for this one before it ends.
                    assert_eq!(unsafe { libc::pthread_kill(this_thread, libc::SIGUSR1) }, 0);
                    thread::yield_now();
                }
            });
            for turn in 0_u64.. {
                drop(black_box(Box::new(turn)));
                guard.check();
                contract.drain(|record| {
                    let whole = match record.class {
                        ViolationClass::Growth => record.bytes == record.count,
                        _ => record.thread == 0 && record.count > 0,
                    };
                    assert!(whole, "a torn record: {record:?}");
                });
                if sender.is_finished() {
                    break;
                }
            }
        });
        assert!(current::count(ViolationClass::Growth).0 > 0);
        assert_eq!(caused() - counted() - before, guard.slot().overlapped());
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
    while !contract.is_armed() {
        thread::yield_now();
    }
    let slot = contract.hot_threads().next().unwrap();
    assert_eq!(slot.mode(), Mode::Armed);
    assert_eq!(slot.alarms(), 0);
    stop.send(()).unwrap();
    let slot = hot.join().unwrap();
    assert!(slot.live().contains(DetectorSet::ALLOCATOR));
}
