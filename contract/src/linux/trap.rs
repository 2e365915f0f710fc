//! The trap signal: page faults, and the supervisor's question where a thread is.
//!
//! The handler runs on the thread it is about, at the instruction it is about. It
//! counts, walks the stack, and writes into the thread's ring; it allocates
//! nothing and takes no lock (design/contract.md `.fault.trap`).

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::boxed::Box;
use std::sync::OnceLock;

use tripoint_core::primitive::{AtomicPtr, Ordering};

use crate::class::ViolationClass;
use crate::current;
use crate::kernel::{Errno, FaultKind};
use crate::slot::Observation;

/// `si_code` of a trap that a perf event sent.
const TRAP_PERF: c_int = 6;

/// What handled the signal before; null until it is ours.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// The beginning of a `siginfo_t` for faults and perf events.
#[repr(C)]
struct TrapInfo {
    signal: c_int,
    errno: c_int,
    code: c_int,
    padding: c_int,
    address: *mut c_void,
    perf_data: usize,
}

/// What a fault event is opened with, so that its traps tell the kind.
pub(super) const fn data_of(kind: FaultKind) -> usize {
    match kind {
        FaultKind::Minor => 1,
        FaultKind::Major => 2,
    }
}

pub(super) fn errno() -> Errno {
    // SAFETY: gives a pointer to this thread's own word, which is always valid.
    Errno(unsafe { *libc::__errno_location() })
}

/// Handles the signal, once in a process, and lets it through to this thread.
pub(super) fn handle_traps() -> Result<(), Errno> {
    // Whoever comes second waits until the handler is there.
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    (*INSTALLED.get_or_init(install))?;
    let mut traps = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set; `sigaddset` gets a valid signal;
    // `pthread_sigmask` reads the set and changes this thread's mask only.
    let code = unsafe {
        libc::sigemptyset(traps.as_mut_ptr());
        libc::sigaddset(traps.as_mut_ptr(), libc::SIGTRAP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, traps.as_ptr(), ptr::null_mut())
    };
    if code == 0 { Ok(()) } else { Err(Errno(code)) }
}

fn install() -> Result<(), Errno> {
    // SAFETY: a zeroed `sigaction` is a valid value: no flags, an empty mask.
    let zeroed = || unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    let previous = Box::into_raw(Box::new(zeroed()));
    let mut action = zeroed();
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_trap;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // Known before our handler is there, so that it always finds it.
    // SAFETY: only asks; `previous` is valid to write.
    if unsafe { libc::sigaction(libc::SIGTRAP, ptr::null(), previous) } != 0 {
        let error = errno();
        // SAFETY: made above, and given to nobody.
        drop(unsafe { Box::from_raw(previous) });
        return Err(error);
    }
    PREVIOUS.store(previous, Ordering::Release);
    // SAFETY: the action is initialised, and its handler has the type that SA_SIGINFO
    // asks for.
    match unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

extern "C" fn on_trap(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: gives a pointer to this thread's own word, which is always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    // SAFETY: the kernel passes a `siginfo_t` whose beginning this is, for traps.
    let trap = unsafe { &*info.cast::<TrapInfo>() };
    match trap.code {
        TRAP_PERF => on_fault(trap, interrupted_at(context)),
        libc::SI_TKILL if current::slot().is_some() => {
            if let Some(slot) = current::slot() {
                slot.keep_call_site(&current::interrupted_site(interrupted_at(context)));
            }
        }
        _ => pass_on(signal, info, context),
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

fn on_fault(trap: &TrapInfo, instruction: usize) {
    let class = if trap.perf_data == data_of(FaultKind::Major) {
        ViolationClass::MajorFault
    } else {
        ViolationClass::MinorFault
    };
    let observation = Observation { address: trap.address.addr(), ..Observation::new(class, 0) };
    current::observe_interrupted(observation, instruction);
}

/// The instruction at which the signal came; zero where this target's is unknown.
fn interrupted_at(context: *mut c_void) -> usize {
    // SAFETY: the kernel passes the `ucontext_t` of the interrupted thread.
    let context = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let instruction = usize::try_from(context.gregs[libc::REG_RIP as usize]).unwrap_or(0);
    #[cfg(target_arch = "aarch64")]
    let instruction = usize::try_from(context.pc).unwrap_or(0);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let instruction = {
        let _ = context;
        0
    };
    instruction
}

/// Gives a trap that is not ours to whoever handled it before, as far as that is
/// a handler: by default a trap ends the process.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.load(Ordering::Acquire);
    // SAFETY: not null while the handler is installed, written before, never freed.
    let Some(previous) = (unsafe { previous.as_ref() }) else { return };
    match previous.sa_sigaction {
        libc::SIG_IGN => {}
        // SAFETY: restores the default and sends the signal again, both allowed
        // in a handler.
        libc::SIG_DFL => unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        },
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO the word is a function of this type.
            let handler = unsafe {
                core::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(
                    handler,
                )
            };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO the word is a function of this type.
            let handler = unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
            handler(signal);
        }
    }
}
