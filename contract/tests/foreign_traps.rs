//! Trap signals that other code sends: they are delivered as they would have been
//! without the contract. Each test has a process of its own, since the handler is
//! installed once in one (design/contract.md `.trap.foreign`).
#![cfg(all(feature = "linux", target_os = "linux", not(miri)))]

mod common;

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::sync::mpsc;
use std::thread;

use common::{Reason, armed, contract, in_child, of_kind, records};
use tripoint_contract::Warning;
use tripoint_contract::{
    ClassSet, Contract, DetectorSet, Guard, HotThread, Policies, Policy, RecordKind, Report, Sentinel,
    ViolationClass,
};
use tripoint_core::internal::{AtomicUsize, Ordering};

const PAGE: usize = 4096;

/// How others send the signal to a thread of this process.
#[derive(Clone, Copy)]
enum Foreign {
    /// As `raise` and `pthread_kill` do.
    Tgkill,
    /// As `pthread_sigqueue` does, with a value.
    Queued(usize),
}

unsafe extern "C" {
    fn pthread_sigqueue(thread: libc::pthread_t, signal: c_int, value: libc::sigval) -> c_int;
}

/// Sends the signal to the calling thread, without a memory call that its supervisor
/// would ask about.
fn be_sent(how: Foreign) {
    // SAFETY: names the calling thread; for `sigval` any word is good.
    let code = unsafe {
        let this = libc::pthread_self();
        match how {
            Foreign::Tgkill => libc::pthread_kill(this, libc::SIGTRAP),
            Foreign::Queued(value) => {
                let value = libc::sigval { sival_ptr: ptr::without_provenance_mut(value) };
                pthread_sigqueue(this, libc::SIGTRAP, value)
            }
        }
    };
    assert_eq!(code, 0);
}

const TRAPS: DetectorSet = DetectorSet::FAULT_TRAP.union(DetectorSet::MEMORY_CALLS);

/// A hot thread that is asked where it is: what it is held to is what this test causes.
fn hot(contract: &'static Contract<Reason, 4>) -> Guard<Reason> {
    hot_with(contract, TRAPS)
}

/// The same with these detectors.
fn hot_with(contract: &'static Contract<Reason, 4>, detectors: DetectorSet) -> Guard<Reason> {
    let classes = ClassSet::MINOR_FAULT | ClassSet::MEMORY_CALL;
    let policies = Policies::all(Policy::Quarantine);
    armed(contract, HotThread { detectors, classes, policies, ..HotThread::new("hot") })
}

/// Maps a page, touches it, and unmaps it.
#[inline(never)]
fn use_fresh_page() {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses; the page is
    // written within, and unmapped whole.
    unsafe {
        let page = libc::mmap(ptr::null_mut(), PAGE, access, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<u8>().write_volatile(1);
        libc::munmap(page, PAGE);
    }
}

static HANDLED: AtomicUsize = AtomicUsize::new(0);
static LAST_CODE: AtomicUsize = AtomicUsize::new(0);
static LAST_VALUE: AtomicUsize = AtomicUsize::new(0);
/// Whether the handler ran with its own signal blocked, as it asks to.
static BLOCKED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn programs_handler(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the kernel's information, valid here; the mask is asked for, and written
    // by the first call.
    unsafe {
        LAST_CODE.store((*info).si_code.cast_unsigned() as usize, Ordering::Relaxed);
        LAST_VALUE.store((*info).si_value().sival_ptr.addr(), Ordering::Relaxed);
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr());
        let blocked = libc::sigismember(mask.as_ptr(), libc::SIGTRAP) == 1;
        BLOCKED.fetch_add(usize::from(blocked), Ordering::Relaxed);
    }
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// How the program handles the signal before the contract takes it over.
fn install(handler: libc::sighandler_t) {
    // SAFETY: a zeroed `sigaction` is a value; the handler is of the type of its flags,
    // or one of the two numbers.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()), 0);
    }
}

/// Checks that faults and memory calls are caught, and the latter's sites asked for.
fn assert_catches(contract: &'static Contract<Reason, 4>, guard: &Guard<Reason>) {
    let (asked, _) = guard.slot().call_site();
    let _ = records(contract);
    use_fresh_page();
    guard.check();
    let caught = of_kind(&records(contract), RecordKind::Violation);
    let of = |class| caught.iter().filter(move |record| record.class == class);
    let live = guard.slot().live();
    if live.contains(DetectorSet::FAULT_TRAP) {
        assert!(of(ViolationClass::MinorFault).count() >= 1);
    }
    if live.contains(DetectorSet::MEMORY_CALLS) {
        assert_eq!(of(ViolationClass::MemoryCall).count(), 2);
        assert!(of(ViolationClass::MemoryCall).all(|call| call.site.frames().len() > 1), "{caught:?}");
        assert_eq!(guard.slot().call_site().0, asked + 2);
    }
}

/// Sends traps of both kinds to an armed thread: they are not taken for the supervisor's.
fn be_sent_both() {
    let contract = contract();
    let guard = hot(contract);
    if !guard.slot().live().contains(TRAPS) {
        eprintln!("SKIPPED: {:?} is refused here", TRAPS.difference(guard.slot().live()));
    }
    assert_catches(contract, &guard);
    let (asked, site) = guard.slot().call_site();
    for (how, code, value) in [
        (Foreign::Tgkill, libc::SI_TKILL, None),
        (Foreign::Queued(0), libc::SI_QUEUE, Some(0)),
        (Foreign::Queued(2), libc::SI_QUEUE, Some(2)),
    ] {
        let before = HANDLED.load(Ordering::Relaxed);
        be_sent(how);
        assert_eq!(guard.slot().call_site().0, asked, "no supervisor asked");
        if before + 1 == HANDLED.load(Ordering::Relaxed) {
            assert_eq!(LAST_CODE.load(Ordering::Relaxed), code.cast_unsigned() as usize);
            assert!(value.is_none_or(|value| value == LAST_VALUE.load(Ordering::Relaxed)));
        }
    }
    assert_eq!(guard.slot().call_site().1, site);
    assert_catches(contract, &guard);
}

fn on_hot_thread(test: fn()) {
    on_hot_thread_with(test);
}

fn on_hot_thread_with(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

fn assert_killed_by_trap(child: &Output) {
    assert_eq!(child.status.signal(), Some(libc::SIGTRAP), "{child:?}");
}

#[test]
fn a_handler_that_was_there_before_gets_them() {
    let Some(child) = in_child("a_handler_that_was_there_before_gets_them") else {
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = programs_handler;
        install(handler as libc::sighandler_t);
        on_hot_thread(be_sent_both);
        assert_eq!(HANDLED.load(Ordering::Relaxed), 3);
        assert_eq!(BLOCKED.load(Ordering::Relaxed), 3);
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn where_they_were_ignored_they_still_are() {
    let Some(child) = in_child("where_they_were_ignored_they_still_are") else {
        install(libc::SIG_IGN);
        on_hot_thread(be_sent_both);
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn by_default_a_trap_from_tgkill_ends_the_process() {
    let Some(child) = in_child("by_default_a_trap_from_tgkill_ends_the_process") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            assert_catches(contract, &guard);
            be_sent(Foreign::Tgkill);
        });
    };
    assert_killed_by_trap(&child);
}

#[test]
fn by_default_a_queued_trap_ends_the_process() {
    let Some(child) = in_child("by_default_a_queued_trap_ends_the_process") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            assert_catches(contract, &guard);
            be_sent(Foreign::Queued(1));
        });
    };
    assert_killed_by_trap(&child);
}

/// The control of the two above: without foreign traps the process goes on.
#[test]
fn without_foreign_traps_the_process_goes_on() {
    let Some(child) = in_child("without_foreign_traps_the_process_goes_on") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            assert_catches(contract, &guard);
            assert_catches(contract, &guard);
        });
    };
    assert!(child.status.success(), "{child:?}");
}

/// A debugger that passes the signal on drops what it carries: the detectors that need this
/// are not live, and the process goes on.
#[test]
fn under_a_debugger_that_passes_traps_the_process_goes_on() {
    const NAME: &str = "under_a_debugger_that_passes_traps_the_process_goes_on";
    const DEBUGGED: &str = "TRIPOINT_DEBUGGED_CHILD";
    if std::env::var_os(DEBUGGED).is_some() {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot_with(contract, TRAPS | DetectorSet::FAULT_POLL);
            let before = guard.slot().tally(ViolationClass::MinorFault).count;
            use_fresh_page();
            guard.poll();
            assert!(guard.slot().tally(ViolationClass::MinorFault).count > before);
            println!("went on");
        });
    }
    let mut debugger = std::process::Command::new("gdb");
    debugger.args(["-nx", "-batch", "-ex", "handle SIGTRAP nostop noprint pass", "-ex", "run", "--args"]);
    debugger.arg(std::env::current_exe().unwrap()).args(["--exact", NAME, "--nocapture"]).env(DEBUGGED, "1");
    let Ok(output) = debugger.output() else {
        eprintln!("SKIPPED: no debugger here");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains("running 1 test") {
        eprintln!("SKIPPED: the debugger starts nothing here: {output:?}");
        return;
    }
    assert!(said.contains("went on") && said.contains("exited normally"), "{output:?}");
}

/// Has the kernel drop what it knows of signals that are sent to this process.
fn fill_signal_queue() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a limit, valid to write and then to read; names the calling thread, which
    // gets no signal, since none can wait.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_SIGPENDING, &raw mut limit), 0);
        limit.rlim_cur = 0;
        assert_eq!(libc::setrlimit(libc::RLIMIT_SIGPENDING, &raw const limit), 0);
        let value = libc::sigval { sival_ptr: ptr::null_mut() };
        let refused = pthread_sigqueue(libc::pthread_self(), libc::SIGRTMIN(), value);
        assert_eq!(refused, libc::EAGAIN, "the control: the queue is full");
    }
}

/// A question arrives without its word, and is answered (`.trap.bare`).
#[test]
fn with_a_full_signal_queue_calls_have_their_sites() {
    let Some(child) = in_child("with_a_full_signal_queue_calls_have_their_sites") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            fill_signal_queue();
            (0..8).for_each(|_| assert_catches(contract, &guard));
        });
    };
    assert!(child.status.success(), "{child:?}");
}

/// The control of the above: a trap as bare is foreign if no supervisor asked.
#[test]
fn with_a_full_signal_queue_a_foreign_trap_ends_the_process() {
    let Some(child) = in_child("with_a_full_signal_queue_a_foreign_trap_ends_the_process") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            fill_signal_queue();
            assert_catches(contract, &guard);
            println!("caught");
            be_sent(Foreign::Tgkill);
        });
    };
    assert_killed_by_trap(&child);
    assert!(String::from_utf8_lossy(&child.stdout).contains("caught"), "{child:?}");
}

/// The kernel lets no program ignore a trap of its own instruction.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_breakpoint_ends_the_process_though_traps_were_ignored() {
    let Some(child) = in_child("a_breakpoint_ends_the_process_though_traps_were_ignored") else {
        install(libc::SIG_IGN);
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            assert_catches(contract, &guard);
            be_sent(Foreign::Tgkill);
            println!("ignored what was sent");
            // SAFETY: a breakpoint changes nothing.
            unsafe { core::arch::asm!("int3") };
        });
    };
    assert_killed_by_trap(&child);
    assert!(String::from_utf8_lossy(&child.stdout).contains("ignored what was sent"), "{child:?}");
}

/// The program's handlers never run on a supervisor: it takes no signals.
#[test]
fn a_supervisor_blocks_every_signal() {
    let Some(child) = in_child("a_supervisor_blocks_every_signal") else {
        let (armed, is_armed) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let hot_thread = thread::spawn(move || {
            let guard = hot(contract());
            armed.send(guard.slot().live()).unwrap();
            drop(armed);
            let _ = ended.recv();
            // Its own mask is as it was.
            let mine = blocked_by("/proc/thread-self/status");
            assert_eq!(mine & (1 << (libc::SIGTRAP - 1) | 1 << (libc::SIGUSR1 - 1)), 0);
        });
        let live = is_armed.recv().unwrap();
        let masks = supervisors();
        drop(end);
        hot_thread.join().unwrap();
        assert_eq!(masks.len(), usize::from(live.contains(DetectorSet::MEMORY_CALLS)));
        // Two cannot be blocked; the C library keeps two more to itself.
        let open = [libc::SIGKILL, libc::SIGSTOP, 32, 33].map(|signal| 1_u64 << (signal - 1));
        for mask in masks {
            assert_eq!(mask | open.iter().sum::<u64>(), u64::MAX, "{mask:#x}");
        }
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

/// What the supervisors of this process block.
fn supervisors() -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let is_supervisor = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "supervisor")
    };
    tasks.filter(is_supervisor).map(|task| blocked_by(task.join("status").to_str().unwrap())).collect()
}

fn blocked_by(status: &str) -> u64 {
    let status = std::fs::read_to_string(status).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

/// Ends this process with a signal if it hangs.
fn end_if_it_hangs() {
    // SAFETY: takes a number, of seconds.
    unsafe { libc::alarm(60) };
}

fn unhandled(signal: c_int) -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: this only asks; `action` is written if it succeeds.
    unsafe {
        assert_eq!(libc::sigaction(signal, ptr::null(), action.as_mut_ptr()), 0);
        action.assume_init()
    }
}

/// Takes the signal over, as a library does that is loaded later.
fn take_over(handler: libc::sighandler_t) {
    // SAFETY: a handler of this type, or one of the two numbers; without SA_SIGINFO.
    unsafe {
        let mut action = unhandled(libc::SIGTRAP);
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()), 0);
    }
}

extern "C" fn later_handler(_signal: c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// What an armed thread finds once another handler has its traps: memory calls are counted,
/// but not asked about; from the next poll on faults are not trapped, and the report says so.
fn be_displaced_by(handler: libc::sighandler_t, poll_first: bool) {
    end_if_it_hangs();
    let contract = contract();
    let guard = hot_with(contract, TRAPS | DetectorSet::FAULT_POLL);
    if !guard.slot().live().contains(TRAPS) {
        eprintln!("SKIPPED: {:?} is refused here", TRAPS.difference(guard.slot().live()));
        return;
    }
    assert_catches(contract, &guard);
    let mut warned = 0;
    let mut look = |sentinel: &mut Sentinel<'_, Reason, 4>| {
        sentinel.poll(0, |warning| warned += usize::from(warning == Warning::TrapsDisplaced));
        warned
    };
    let mut sentinel = Sentinel::new(contract, &[]);
    assert_eq!(look(&mut sentinel), 0);
    take_over(handler);
    if poll_first {
        guard.poll();
        assert_eq!(guard.slot().live(), DetectorSet::MEMORY_CALLS | DetectorSet::FAULT_POLL);
        assert_eq!(Report::new(contract).missing(), DetectorSet::FAULT_TRAP);
    }
    let tally = |class| guard.slot().tally(class).count;
    let (faults, calls) = (tally(ViolationClass::MinorFault), tally(ViolationClass::MemoryCall));
    let (asked, handled) = (guard.slot().call_site().0, HANDLED.load(Ordering::Relaxed));
    use_fresh_page();
    assert_eq!(guard.slot().call_site().0, asked, "a thread that cannot answer is not asked");
    assert_eq!(tally(ViolationClass::MemoryCall), calls + 2);
    guard.poll();
    assert!(tally(ViolationClass::MinorFault) > faults, "the poll finds what nothing trapped");
    assert!(!guard.slot().live().contains(DetectorSet::FAULT_TRAP));
    assert_eq!(HANDLED.load(Ordering::Relaxed) > handled, !poll_first && handler > libc::SIG_IGN);
    assert_eq!((0..2).map(|_| look(&mut sentinel)).collect::<Vec<_>>(), [1, 1], "told once");
}

/// (design/contract.md `.trap.displaced`)
#[test]
fn a_handler_that_comes_later_hangs_no_thread() {
    let Some(child) = in_child("a_handler_that_comes_later_hangs_no_thread") else {
        let handler: extern "C" fn(c_int) = later_handler;
        return on_hot_thread_with(move || be_displaced_by(handler as libc::sighandler_t, false));
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn after_a_poll_a_later_handler_gets_no_faults() {
    let Some(child) = in_child("after_a_poll_a_later_handler_gets_no_faults") else {
        let handler: extern "C" fn(c_int) = later_handler;
        return on_hot_thread_with(move || be_displaced_by(handler as libc::sighandler_t, true));
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn after_a_poll_the_default_that_comes_later_ends_nothing() {
    let Some(child) = in_child("after_a_poll_the_default_that_comes_later_ends_nothing") else {
        return on_hot_thread_with(|| be_displaced_by(libc::SIG_DFL, true));
    };
    assert!(child.status.success(), "{child:?}");
}

/// What remains: a fault between the change and the poll.
#[test]
fn before_a_poll_the_default_that_comes_later_ends_the_process_at_a_fault() {
    let Some(child) = in_child("before_a_poll_the_default_that_comes_later_ends_the_process_at_a_fault")
    else {
        return on_hot_thread_with(|| be_displaced_by(libc::SIG_DFL, false));
    };
    assert_killed_by_trap(&child);
}

/// Other signals interrupt the calls that wait for their supervisor, and these start again:
/// each is counted once, and none is asked about forever.
#[test]
fn calls_that_other_signals_interrupt_are_counted_once() {
    let Some(child) = in_child("calls_that_other_signals_interrupt_are_counted_once") else {
        return on_hot_thread_with(|| {
            end_if_it_hangs();
            let handler: extern "C" fn(c_int) = later_handler;
            let contract = contract();
            let guard = hot(contract);
            // SAFETY: the handler counts; names the calling thread, which waits for the
            // sender.
            let this = unsafe {
                let mut action = unhandled(libc::SIGUSR1);
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);
                libc::pthread_self()
            };
            let (end, ended) = mpsc::channel::<()>();
            // Started before: a thread of the test is not to be under the filter's count.
            let calls = || guard.slot().tally(ViolationClass::MemoryCall).count;
            thread::scope(|scope| {
                scope.spawn(move || {
                    while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                        // SAFETY: the thread waits for this one.
                        unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                    }
                });
                while HANDLED.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
                let before = calls();
                (0..1_000).for_each(|_| use_fresh_page());
                let counted = calls() - before;
                drop(end);
                if guard.slot().live().contains(DetectorSet::MEMORY_CALLS) {
                    assert_eq!(counted, 2_000);
                }
            });
        });
    };
    assert!(child.status.success(), "{child:?}");
}
