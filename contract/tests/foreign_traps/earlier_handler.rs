//! The handler that was there before the contract's, or what the kernel does without one.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use crate::common::{contract, in_child};
use crate::{Foreign, HANDLED, TRAPS, assert_catches, assert_killed_by_trap, be_sent, hot, on_hot_thread};
use tripoint_contract::internal::last_call_site;
use tripoint_core::internal::{AtomicUsize, Ordering};

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

/// Sends traps of both kinds to an armed thread: they are not taken for the supervisor's.
fn be_sent_both() {
    let contract = contract();
    let guard = hot(contract);
    if !guard.slot().live().contains(TRAPS) {
        tripoint_oracle::skipped!("{:?} is refused here", TRAPS.difference(guard.slot().live()));
    }
    assert_catches(contract, &guard);
    let (asked, site) = last_call_site(guard.slot());
    for (how, code, value) in [
        (Foreign::Tgkill, libc::SI_TKILL, None),
        (Foreign::Queued(0), libc::SI_QUEUE, Some(0)),
        (Foreign::Queued(2), libc::SI_QUEUE, Some(2)),
    ] {
        let before = HANDLED.load(Ordering::Relaxed);
        be_sent(how);
        assert_eq!(last_call_site(guard.slot()).0, asked, "no supervisor asked");
        if before + 1 == HANDLED.load(Ordering::Relaxed) {
            assert_eq!(LAST_CODE.load(Ordering::Relaxed), code.cast_unsigned() as usize);
            assert!(value.is_none_or(|value| value == LAST_VALUE.load(Ordering::Relaxed)));
        }
    }
    assert_eq!(last_call_site(guard.slot()).1, site);
    assert_catches(contract, &guard);
}

#[test]
fn a_handler_that_was_there_before_gets_them() {
    let Some(child) = in_child("earlier_handler::a_handler_that_was_there_before_gets_them") else {
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
fn traps_that_were_ignored_still_are() {
    let Some(child) = in_child("earlier_handler::traps_that_were_ignored_still_are") else {
        install(libc::SIG_IGN);
        on_hot_thread(be_sent_both);
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn by_default_a_trap_from_tgkill_ends_the_process() {
    let Some(child) = in_child("earlier_handler::by_default_a_trap_from_tgkill_ends_the_process") else {
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
    let Some(child) = in_child("earlier_handler::by_default_a_queued_trap_ends_the_process") else {
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
    let Some(child) = in_child("earlier_handler::without_foreign_traps_the_process_goes_on") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            assert_catches(contract, &guard);
            assert_catches(contract, &guard);
        });
    };
    assert!(child.status.success(), "{child:?}");
}

/// The kernel lets no program ignore a trap of its own instruction.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_breakpoint_ends_the_process_though_traps_were_ignored() {
    let Some(child) = in_child("earlier_handler::a_breakpoint_ends_the_process_though_traps_were_ignored")
    else {
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
