//! A handler that is installed after the contract's, and displaces it.

use core::ffi::c_int;
use core::ptr;

use crate::common::{Reason, contract, has_skipped, in_child};
use crate::{
    HANDLED, TRAPS, assert_catches, assert_killed_by_trap, end_if_it_hangs, hot_with, later_handler,
    on_hot_thread, unhandled, use_fresh_page,
};
use tripoint_contract::internal::last_call_site;
use tripoint_contract::{DetectorSet, Report, Sentinel, ViolationClass, Warning};
use tripoint_core::internal::Ordering;

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

/// What an armed thread finds once another handler has its traps: memory calls are counted,
/// but not asked about; from the next poll on faults are not trapped, and the report says so.
fn be_displaced_by(handler: libc::sighandler_t, poll_first: bool) {
    end_if_it_hangs();
    let contract = contract();
    let guard = hot_with(contract, TRAPS | DetectorSet::FAULT_POLL);
    if !guard.slot().live().contains(TRAPS) {
        tripoint_oracle::skipped!("{:?} is refused here", TRAPS.difference(guard.slot().live()));
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
    let (asked, handled) = (last_call_site(guard.slot()).0, HANDLED.load(Ordering::Relaxed));
    use_fresh_page();
    assert_eq!(last_call_site(guard.slot()).0, asked, "a thread that cannot answer is not asked");
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
    let Some(child) = in_child("later_handler::a_handler_that_comes_later_hangs_no_thread") else {
        let handler: extern "C" fn(c_int) = later_handler;
        return on_hot_thread(move || be_displaced_by(handler as libc::sighandler_t, false));
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn after_a_poll_a_later_handler_gets_no_faults() {
    let Some(child) = in_child("later_handler::after_a_poll_a_later_handler_gets_no_faults") else {
        let handler: extern "C" fn(c_int) = later_handler;
        return on_hot_thread(move || be_displaced_by(handler as libc::sighandler_t, true));
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn after_a_poll_the_default_that_comes_later_ends_nothing() {
    let Some(child) = in_child("later_handler::after_a_poll_the_default_that_comes_later_ends_nothing")
    else {
        return on_hot_thread(|| be_displaced_by(libc::SIG_DFL, true));
    };
    assert!(child.status.success(), "{child:?}");
}

/// What remains: a fault between the change and the poll.
#[test]
fn before_a_poll_the_default_that_comes_later_ends_the_process_at_a_fault() {
    let Some(child) =
        in_child("later_handler::before_a_poll_the_default_that_comes_later_ends_the_process_at_a_fault")
    else {
        return on_hot_thread(|| be_displaced_by(libc::SIG_DFL, false));
    };
    if has_skipped(&child) {
        return;
    }
    assert_killed_by_trap(&child);
}
