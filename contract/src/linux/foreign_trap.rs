//! Traps that are not ours: they are passed to the handler that was there
//! before (design/contract.md `.trap.foreign`).

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::boxed::Box;

use tripoint_core::internal::{AtomicPtr, Ordering};

use crate::linux::errno::errno;
use crate::linux::kernel::Errno;
use crate::linux::signals;

/// `si_code` of a trap that a perf event sent.
pub(super) const TRAP_PERF: c_int = 6;

/// The action that was there before ours; null until ours is installed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Remembers the handler of the signal.
pub(super) fn remember_handler() -> Result<(), Errno> {
    // SAFETY: a zeroed `sigaction` is a valid value: no flags, an empty mask.
    let zeroed = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    let previous = Box::into_raw(Box::new(zeroed));
    // SAFETY: only asks; `previous` is valid to write.
    if unsafe { libc::sigaction(libc::SIGTRAP, ptr::null(), previous) } != 0 {
        let error = errno();
        // SAFETY: made above by `Box::into_raw`, and shared with nothing.
        drop(unsafe { Box::from_raw(previous) });
        return Err(error);
    }
    PREVIOUS.store(previous, Ordering::Release);
    Ok(())
}

/// Does with a trap what would have been done without our handler: calls the handler that
/// was there, ignores the trap, or ends the process.
pub(super) fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.load(Ordering::Acquire);
    // SAFETY: not null while the handler is installed, written before, never freed.
    let Some(previous) = (unsafe { previous.as_ref() }) else { return };
    // SAFETY: the kernel passed `info` to our handler, and it is valid during that call.
    let forced = is_forced(unsafe { (*info).si_code });
    match previous.sa_sigaction {
        libc::SIG_IGN if !forced => {}
        // A debugger that passes our traps on drops what they carry
        // (design/contract.md `.trap.debugger`).
        libc::SIG_DFL | libc::SIG_IGN if is_traced() => {}
        // SAFETY: restores the default and sends the signal again, both allowed
        // in a handler. Ours does not block it, so the process ends here.
        libc::SIG_DFL | libc::SIG_IGN => unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        },
        _ => signals::while_blocked(&blocked_by(previous, signal), || call(previous, signal, info, context)),
    }
}

/// Whether a debugger or another tracer is attached to this process. Allocates nothing and
/// takes no lock.
fn is_traced() -> bool {
    let mut status = [0_u8; 1024];
    // SAFETY: a path that ends with null; as many bytes as there is room for; a descriptor that was
    // opened here.
    let size = unsafe {
        let file = libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let size = libc::read(file, status.as_mut_ptr().cast(), status.len());
        libc::close(file);
        usize::try_from(size).unwrap_or(0)
    };
    let mut lines = status[..size].split(|&byte| byte == b'\n');
    let tracer = lines.find_map(|line| line.strip_prefix(b"TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim_ascii() != b"0")
}

/// Whether the kernel would end the process rather than let it ignore the trap: one of
/// its own instruction, as a breakpoint. The kernel sends those of perf events, though
/// they have such a code too.
const fn is_forced(code: c_int) -> bool {
    code > 0 && code != TRAP_PERF
}

/// What the kernel would block while that handler runs.
fn blocked_by(action: &libc::sigaction, signal: c_int) -> libc::sigset_t {
    let mut signals = action.sa_mask;
    if action.sa_flags & libc::SA_NODEFER == 0 {
        // SAFETY: an initialised set and a valid signal.
        unsafe { libc::sigaddset(&raw mut signals, signal) };
    }
    signals
}

fn call(action: &libc::sigaction, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if action.sa_flags & libc::SA_SIGINFO == 0 {
        // SAFETY: without SA_SIGINFO the word is a function of this type.
        let handler = unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(action.sa_sigaction) };
        handler(signal);
    } else {
        // SAFETY: with SA_SIGINFO the word is a function of this type.
        let handler = unsafe {
            core::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(
                action.sa_sigaction,
            )
        };
        handler(signal, info, context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_traps_of_an_instruction_are_forced() {
        for code in [libc::TRAP_BRKPT, libc::TRAP_TRACE, libc::SI_KERNEL] {
            assert!(is_forced(code), "{code}");
        }
        for code in [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL, libc::SI_TIMER, TRAP_PERF] {
            assert!(!is_forced(code), "{code}");
        }
    }
}
