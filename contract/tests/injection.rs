//! Every call of the kernel that detectors make, refused the first, second, ...
//! time: no panic, no descriptor and no thread left, the report of what is live
//! is right, and those detectors work, and the next session has everything
//! again (design/contract.md `.req.live`).
//!
//! One test at a time: descriptors and threads are counted for the process.
#![cfg(tripoint_kernel)]

mod common;
#[path = "common/refuse.rs"]
mod refuse;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use common::{Reason, contract, records};
use refuse::refuse;
use tripoint_contract::Sentinel;
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors, validate_runtime_on};
use tripoint_contract::linux::RuntimeOptions;
use tripoint_contract::mock::{Calls, Failing, Refusal};
use tripoint_contract::{
    Contract, DetectorSet, Guard, HotThread, Policies, Policy, Report, ViolationClass, ViolationSet,
};
use tripoint_core::Error;
use tripoint_oracle::forever;

const PAGE: usize = 4096;

/// The detectors that ask the kernel for something.
const EVERY: DetectorSet = DetectorSet::FAULT_TRAP.union(DetectorSet::FAULT_POLL).union(FILTERED);

/// Those that need a filter.
const FILTERED: DetectorSet = DetectorSet::MEMORY_CALLS.union(DetectorSet::WAITS);

const SEEN: ViolationSet =
    ViolationSet::MINOR_FAULT.union(ViolationSet::MAJOR_FAULT).union(ViolationSet::MEMORY_CALL);

/// Beyond any number of calls that a session makes.
const CALLS_BOUND: usize = 1_000;

fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TESTS: Mutex<()> = Mutex::new(());
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

type Detected = Guard<Reason, ThreadDetectors<Failing<LinuxKernel>>>;

/// Three fresh pages: three faults and two memory calls.
#[inline(never)]
fn use_fresh_pages() {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), 3 * PAGE, access, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED, "memory calls go on, whatever was refused");
    for page in 0..3 {
        // SAFETY: the first byte of a page of the mapping, ours alone.
        unsafe { base.cast::<u8>().add(page * PAGE).write_volatile(1) };
    }
    // SAFETY: the whole mapping, not used any more.
    assert_eq!(unsafe { libc::munmap(base, 3 * PAGE) }, 0);
}

/// Checks that each detector that says it is live counts what it is for.
fn assert_live_is_true(contract: &'static Contract<Reason, 4>, guard: &Detected) {
    let faults = || guard.slot().tally(ViolationClass::MinorFault).count;
    // The next poll makes up for a refused one.
    guard.poll();
    guard.poll();
    // A poll that finds another handler ends the traps.
    let live = guard.slot().live();
    let (before, _) = (faults(), records(contract));
    use_fresh_pages();
    if live.contains(DetectorSet::FAULT_TRAP) {
        assert!(faults() - before >= 3, "traps count");
    }
    guard.poll();
    guard.poll();
    if live.intersects(DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL) {
        assert!(faults() - before >= 3, "polls count");
    } else {
        assert_eq!(faults(), before, "no detector counts faults");
    }
    if live.contains(DetectorSet::MEMORY_CALLS) {
        let is_ours = |record: &&tripoint_contract::Record| {
            record.class == ViolationClass::MemoryCall && record.bytes == 3 * PAGE && record.call != 0
        };
        assert_eq!(records(contract).iter().filter(is_ours).count(), 2, "mmap and munmap");
    }
    if live.contains(DetectorSet::WAITS) {
        let waits = || guard.slot().tally(ViolationClass::Wait).count;
        let before = waits();
        thread::yield_now();
        assert_eq!(waits() - before, 1, "a wait");
    }
}

/// A session of one hot thread, from registration to teardown; returns what was live.
///
/// # Errors
/// Those of the registration.
fn session(kernel: Failing<LinuxKernel>) -> Result<DetectorSet, Error> {
    let contract = contract();
    let policies = Policies::all(Policy::Quarantine);
    let thread =
        HotThread { core: Some(0), classes: SEEN, detectors: EVERY, policies, ..HotThread::new("hot") };
    let guard = contract.register_with(thread, ThreadDetectors::new(kernel, EVERY))?;
    contract.begin_warmup().unwrap();
    contract.enter_steady_state(&()).unwrap();
    guard.check();
    let live = guard.slot().live();
    assert_eq!(Report::new(contract).missing(), EVERY.difference(live), "what is not live is said");
    assert_live_is_true(contract, &guard);
    guard.check();
    assert!(live.is_empty() || guard.slot().alarms() > 0);
    contract.begin_teardown(&()).unwrap();
    guard.check();
    // Records that were given up count as lost.
    Ok(live.intersection(guard.slot().live()))
}

/// Runs a session on a thread of its own, after `prepare`; waits for its supervisor.
fn session_after(prepare: fn(), kernel: Failing<LinuxKernel>) -> Result<DetectorSet, Error> {
    let hot = thread::spawn(move || {
        prepare();
        session(kernel)
    });
    let live = hot.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let ended = (0..1_000_000).any(|_| {
        thread::yield_now();
        supervisors() == 0
    });
    assert!(ended, "a supervisor ends with its thread");
    live
}

fn sound() -> Failing<LinuxKernel> {
    Failing::new(LinuxKernel, Calls::empty())
}

/// What is live if nothing is refused. Prints what this kernel lacks.
fn offered() -> DetectorSet {
    let live = session_after(|| {}, sound()).unwrap();
    if live != EVERY {
        tripoint_oracle::skipped!("{:?} is refused here", EVERY.difference(live));
    }
    live
}

/// The threads of this process that are supervisors.
fn supervisors() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks.filter_map(name).filter(|name| name.trim() == "supervisor").count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The handler of the trap signal.
fn trap_handler() -> usize {
    let mut action = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks; `action` is valid to write, and zeroed, which is a value.
    unsafe {
        assert_eq!(libc::sigaction(libc::SIGTRAP, core::ptr::null(), action.as_mut_ptr()), 0);
        action.assume_init().sa_sigaction
    }
}

/// The detectors that a refusal of these calls may cost, and must cost if the
/// call is made only once.
fn costs(call: Calls) -> DetectorSet {
    match call {
        Calls::FAULTS => DetectorSet::FAULT_POLL,
        Calls::HANDLE_TRAPS | Calls::OPEN_FAULT_EVENT | Calls::HAS_TRAPS => DetectorSet::FAULT_TRAP,
        Calls::INSTALL_FILTER | Calls::START_THREAD | Calls::PREPARE_CHILDREN => FILTERED,
        Calls::TOUCH => DetectorSet::FAULT_TRAP | DetectorSet::MEMORY_CALLS,
        Calls::TRY_TO_WAIT => DetectorSet::WAITS,
        _ => DetectorSet::empty(),
    }
}

/// Whether a refusal of such a call always costs its detector: the call is not made
/// again.
fn is_final(call: Calls) -> bool {
    let once = Calls::HANDLE_TRAPS
        | Calls::OPEN_FAULT_EVENT
        | Calls::INSTALL_FILTER
        | Calls::START_THREAD
        | Calls::PREPARE_CHILDREN
        | Calls::TRY_TO_WAIT;
    once.contains(call)
}

/// A session with one call refused; returns false if it was not made so often.
fn survives(call: Calls, nth: usize, offered: DetectorSet) -> bool {
    let refusal: &'static Refusal = forever(Refusal::new(call, nth));
    let before = descriptors();
    let live = session_after(|| {}, sound().with_refusal(refusal));
    assert_eq!(descriptors(), before, "{call:?} {nth}: every descriptor is closed");
    match live {
        Err(error) => {
            assert!(matches!(error, Error::Parameter(_)), "{error}");
            assert_eq!((call, nth), (Calls::PIN, 1));
        }
        Ok(live) => {
            let lost = offered.difference(live);
            assert!(costs(call).contains(lost), "{call:?} {nth} cost {lost:?}");
            assert!(refusal.is_over() || lost.is_empty(), "{lost:?} is lost, and nothing was refused");
            if refusal.is_over() && is_final(call) {
                assert_eq!(lost, costs(call).intersection(offered), "{call:?} {nth}");
            }
        }
    }
    refusal.is_over()
}

#[test]
fn every_call_of_a_session_may_be_refused_every_time() {
    let _alone = one_at_a_time();
    let before = trap_handler();
    assert!(survives(Calls::HANDLE_TRAPS, 1, EVERY.difference(FILTERED)));
    assert_eq!(trap_handler(), before, "a refused handler is not there");
    let offered = offered();
    let handler = trap_handler();
    let mut refused = 0;
    // The coordinator's own calls have tests of their own. Nothing is printed in a
    // session: that ends a process (tests/fail_fast.rs).
    let of_coordinator = Calls::LOCK | Calls::BRING_IN | Calls::RAISE_LOCK_LIMIT | Calls::TRIM_HEAP;
    for call in Calls::all().difference(of_coordinator | Calls::TELL).iter() {
        let times = (1..CALLS_BOUND).find(|&nth| !survives(call, nth, offered)).unwrap() - 1;
        let needs = costs(call) | if call == Calls::SEND_TRAP { DetectorSet::MEMORY_CALLS } else { EVERY };
        assert!(times > 0 || !offered.contains(needs), "{call:?} was driven");
        eprintln!("{call:?}: {times} calls, each refused once");
        refused += times;
    }
    assert!(refused > 0);
    assert_eq!(trap_handler(), handler, "installed once, and left as it is");
    assert_eq!(session_after(|| {}, sound()), Ok(offered), "usable afterwards");
}

/// The sentinel and the look at the system, with each call refused in turn.
#[test]
fn every_look_at_the_process_may_be_refused() {
    let _alone = one_at_a_time();
    let look = |refusal: Option<&'static Refusal>| {
        let kernel = refusal.map_or(sound(), |refusal| sound().with_refusal(refusal));
        let contract = contract();
        let mut sentinel = Sentinel::new_on(kernel, contract, &[]);
        let mut readings = Vec::new();
        for now in 0..3 {
            sentinel.poll(now, |_warning| {});
            readings.push(*sentinel.last());
        }
        let report = validate_runtime_on(&kernel, RuntimeOptions::default());
        let unknown = report.findings.iter().filter(|finding| finding.value == "unknown").count();
        let lost = |reading: &&tripoint_contract::ProcessReading| {
            reading.faults.is_none() || reading.resident.is_none()
        };
        (readings.iter().filter(lost).count(), unknown)
    };
    let before = descriptors();
    let (none_lost, unknown) = look(None);
    assert_eq!(none_lost, 0);
    for call in [Calls::FAULTS, Calls::READ] {
        let times = (1..CALLS_BOUND).find(|&nth| {
            let refusal: &'static Refusal = forever(Refusal::new(call, nth));
            let (lost, now_unknown) = look(Some(refusal));
            assert!(lost + now_unknown - unknown <= 1, "one refusal costs one reading at most");
            assert!(nth > 3 || lost == 1, "and says that it is not known");
            assert_eq!(descriptors(), before);
            !refusal.is_over() && nth > 3
        });
        assert!(times.unwrap() > 3, "{call:?}");
    }
}

/// The system calls themselves refused, as a sandbox does.
#[test]
fn a_sandbox_that_refuses_a_system_call_is_reported() {
    let _alone = one_at_a_time();
    let offered = offered();
    let before = descriptors();
    let sandboxes: [(fn(), DetectorSet); 5] = [
        (|| refuse(libc::SYS_perf_event_open), DetectorSet::FAULT_TRAP),
        (|| refuse(libc::SYS_getrusage), DetectorSet::FAULT_POLL),
        (|| refuse(libc::SYS_seccomp), FILTERED),
        (|| [libc::SYS_clone, libc::SYS_clone3].into_iter().for_each(refuse), FILTERED),
        (|| refuse(libc::SYS_rt_tgsigqueueinfo), DetectorSet::empty()),
    ];
    for (index, (sandbox, lost)) in sandboxes.into_iter().enumerate() {
        assert_eq!(session_after(sandbox, sound()), Ok(offered.difference(lost)), "sandbox {index}");
    }
    let unpinned = session_after(|| refuse(libc::SYS_sched_setaffinity), sound());
    assert!(matches!(unpinned, Err(Error::Parameter(why)) if why.contains("HotThread::core")));
    assert_eq!(descriptors(), before);
    assert_eq!(session_after(|| {}, sound()), Ok(offered), "usable afterwards");
}
