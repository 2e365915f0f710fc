//! Signals of the program that interrupt the calls which wait for their supervisor. Such calls
//! start again (design/contract.md `.call.again`).

use core::ffi::c_int;
use core::ptr;
use std::sync::mpsc;
use std::thread;

use crate::common::{Reason, contract, in_child};
use crate::{
    HANDLED, TRAPS, end_if_it_hangs, later_handler, on_hot_thread, thread_under, unhandled, use_fresh_page,
};
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors};
use tripoint_contract::mock::{Calls, Failing};
use tripoint_contract::{DetectorSet, Guard, ViolationClass};
use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};

/// Handles SIGUSR1, and has interrupted calls start again.
fn handle_signals() {
    let handler: extern "C" fn(c_int) = later_handler;
    // SAFETY: an action of this process, changed to a handler that only counts, of the type
    // that no SA_SIGINFO asks for.
    unsafe {
        let mut action = unhandled(libc::SIGUSR1);
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);
    }
}

/// An armed thread whose kernel does `interrupt` before it lets a call go on.
fn armed_with(interrupt: fn()) -> Guard<Reason, ThreadDetectors<Failing<LinuxKernel>>> {
    let kernel = Failing::new(LinuxKernel, Calls::empty()).with_before(Calls::RESUME, interrupt);
    let contract = contract();
    let guard = contract.register_with(thread_under(TRAPS), ThreadDetectors::new(kernel, TRAPS)).unwrap();
    guard.arm();
    guard
}

/// The memory calls that `work` makes, as they are counted. `None` if none are seen here.
fn counted(
    guard: &Guard<Reason, ThreadDetectors<Failing<LinuxKernel>>>,
    work: impl FnOnce(),
) -> Option<usize> {
    let calls = || guard.slot().tally(ViolationClass::MemoryCall).count;
    let before = calls();
    work();
    let live = guard.slot().live().contains(DetectorSet::MEMORY_CALLS);
    if !live {
        tripoint_oracle::skipped!("filters are refused here");
    }
    live.then(|| calls() - before)
}

/// The thread whose calls are interrupted.
static HOT: AtomicUsize = AtomicUsize::new(0);
/// Whether they are.
static INTERRUPTS: AtomicBool = AtomicBool::new(false);
/// How often a call was to be let go while they are.
static RESUMED: AtomicUsize = AtomicUsize::new(0);

/// Interrupts a call as it is let go for the first time, after it was counted; and returns when
/// the signal's handler ran. So the kernel finds no call to let go, and the call starts again.
fn interrupt_once() {
    if !INTERRUPTS.load(Ordering::Acquire) || RESUMED.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
        return;
    }
    let before = HANDLED.load(Ordering::Relaxed);
    // SAFETY: the thread waits for its supervisor, which runs this.
    assert_eq!(unsafe { libc::pthread_kill(HOT.load(Ordering::Relaxed) as _, libc::SIGUSR1) }, 0);
    while HANDLED.load(Ordering::Relaxed) == before {
        thread::yield_now();
    }
}

#[test]
fn calls_that_other_signals_interrupt_are_counted_once() {
    const CALLS: usize = 200;
    let Some(child) = in_child("other_signals::calls_that_other_signals_interrupt_are_counted_once") else {
        return on_hot_thread(|| {
            end_if_it_hangs();
            handle_signals();
            let guard = armed_with(interrupt_once);
            // SAFETY: names the calling thread, which outlives the use of the name.
            HOT.store(unsafe { libc::pthread_self() } as usize, Ordering::Relaxed);
            INTERRUPTS.store(true, Ordering::Release);
            let counted = counted(&guard, || (0..CALLS / 2).for_each(|_| use_fresh_page()));
            INTERRUPTS.store(false, Ordering::Release);
            if let Some(counted) = counted {
                assert_eq!((counted, HANDLED.load(Ordering::Relaxed)), (CALLS, CALLS));
            }
        });
    };
    assert!(child.status.success(), "{child:?}");
}

/// A flood of signals at any time: no call is missed, and none is asked about forever. A call whose answer
/// the kernel loses to a signal is counted again, so there may be more.
#[test]
fn calls_under_a_flood_of_other_signals_go_on() {
    const CALLS: usize = 2_000;
    const SIGNALS: usize = 1_000_000;
    let Some(child) = in_child("other_signals::calls_under_a_flood_of_other_signals_go_on") else {
        return on_hot_thread(|| {
            end_if_it_hangs();
            handle_signals();
            let guard = armed_with(|| {});
            // SAFETY: names the calling thread, which waits for the sender.
            let this = unsafe { libc::pthread_self() };
            let (end, ended) = mpsc::channel::<()>();
            thread::scope(|scope| {
                scope.spawn(move || {
                    // Not without end: a thread that always has a signal waiting does nothing else.
                    for _ in 0..SIGNALS {
                        if ended.try_recv() != Err(mpsc::TryRecvError::Empty) {
                            break;
                        }
                        // SAFETY: the thread waits for this one.
                        unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                    }
                });
                while HANDLED.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
                let counted = counted(&guard, || (0..CALLS / 2).for_each(|_| use_fresh_page()));
                drop(end);
                assert!(counted.is_none_or(|counted| counted >= CALLS), "{counted:?}");
            });
        });
    };
    assert!(child.status.success(), "{child:?}");
}
