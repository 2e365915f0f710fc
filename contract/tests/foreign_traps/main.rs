//! Trap signals that other code sends: they are delivered as they would have been
//! without the contract. Each test has a process of its own, since the handler is
//! installed once in one (design/contract.md `.trap.foreign`).
#![cfg(tripoint_kernel)]

#[path = "../common/mod.rs"]
mod common;
mod debugger;
mod earlier_handler;
mod full_queue;
mod later_handler;
mod other_signals;
mod supervisor;

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::thread;

use common::{Reason, armed, of_kind, records};
use tripoint_contract::internal::last_call_site;
use tripoint_contract::{
    Contract, DetectorSet, Guard, HotThread, Policies, Policy, RecordKind, ViolationClass, ViolationSet,
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
    armed(contract, thread_under(detectors))
}

/// A thread that is held to faults and memory calls, as far as these detectors see them.
fn thread_under(detectors: DetectorSet) -> HotThread<'static> {
    let classes = ViolationSet::MINOR_FAULT | ViolationSet::MEMORY_CALL;
    let policies = Policies::all(Policy::Quarantine);
    HotThread { detectors, classes, policies, ..HotThread::new("hot") }
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

/// The signals that a handler of the program got.
static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn later_handler(_signal: c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Checks that faults and memory calls are caught, and the latter's sites asked for.
fn assert_catches(contract: &'static Contract<Reason, 4>, guard: &Guard<Reason>) {
    let (asked, _) = last_call_site(guard.slot());
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
        assert_eq!(last_call_site(guard.slot()).0, asked + 2);
    }
}

fn on_hot_thread(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

fn assert_killed_by_trap(child: &Output) {
    assert_eq!(child.status.signal(), Some(libc::SIGTRAP), "{child:?}");
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
