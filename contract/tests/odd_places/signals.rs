//! What a program does with signals.

use core::ffi::c_int;
use core::ptr;

pub(crate) extern "C" fn do_nothing(_signal: c_int) {}

pub(crate) fn set_action(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: a zeroed `sigaction` is a value; a handler of this type, or one of the numbers.
    unsafe {
        let mut action = core::mem::MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
    }
}

pub(crate) fn handle(signal: c_int, handler: extern "C" fn(c_int)) {
    set_action(signal, handler as libc::sighandler_t);
}

pub(crate) fn block_traps() {
    let mut traps = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by the first call.
    unsafe {
        libc::sigemptyset(traps.as_mut_ptr());
        libc::sigaddset(traps.as_mut_ptr(), libc::SIGTRAP);
        libc::pthread_sigmask(libc::SIG_BLOCK, traps.as_ptr(), ptr::null_mut());
    }
}
