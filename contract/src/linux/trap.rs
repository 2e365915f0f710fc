//! The trap signal: page faults, and the supervisor's question where a thread is.
//!
//! The handler runs on the thread it is about, at the instruction it is about. It
//! counts, walks the stack, and writes into the thread's ring; it allocates
//! nothing and takes no lock (design/contract.md `.fault.trap`).
//!
//! A fault of its own traps within it, and is recognised by that. If the signal were
//! blocked meanwhile, such a trap would come after it, and be taken for the thread's
//! (design/contract.md `.fault.own`).

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::sync::OnceLock;

use tripoint_stack::Site;

use crate::linux::errno::errno;
use crate::linux::foreign_trap::{self, TRAP_PERF};
use crate::linux::kernel::{Errno, FaultKind};
use crate::thread::current;
use crate::thread::observation::Observation;
use crate::words::class::ViolationClass;

/// What a trap of ours is about.
#[derive(Clone, Copy)]
enum Trap {
    MinorFault,
    MajorFault,
    /// The supervisor asks where the thread is.
    CallSite,
}

/// Codes of signals that a process sends, by `kill` and by `sigqueue`. Older versions of libc do not have them.
const SI_USER: c_int = 0;
const SI_QUEUE: c_int = -1;

/// Traps of ours carry an address in here, which no other trap has reason to
/// (design/contract.md `.trap.foreign`).
static WORDS: [u8; 3] = [0; 3];

/// The beginning of a `siginfo_t` of a perf event.
#[repr(C)]
struct PerfInfo {
    signal: c_int,
    errno: c_int,
    code: c_int,
    address: *mut c_void,
    word: usize,
}

/// The beginning of a `siginfo_t` of a queued signal.
#[repr(C)]
struct QueuedInfo {
    signal: c_int,
    errno: c_int,
    code: c_int,
    sender: Sender,
}

#[repr(C)]
struct Sender {
    process: c_int,
    user: libc::uid_t,
    word: *mut c_void,
}

const _: () = assert!(size_of::<PerfInfo>() <= size_of::<libc::siginfo_t>());
const _: () = assert!(size_of::<QueuedInfo>() <= size_of::<libc::siginfo_t>());

impl Trap {
    fn word(self) -> usize {
        (&raw const WORDS[self as usize]).addr()
    }

    /// What a trap is about, if it is ours.
    fn of(info: &libc::siginfo_t) -> Option<Self> {
        let [faults, questions] = [&[Self::MinorFault, Self::MajorFault][..], &[Self::CallSite]];
        let (ours, word) = match info.si_code {
            TRAP_PERF => (faults, perf_info(info).word),
            // SAFETY: queued, so it has a sender and a value; asking for one's own
            // process cannot fail.
            SI_QUEUE if unsafe { info.si_pid() == libc::getpid() } => {
                // SAFETY: queued, so it has a value.
                (questions, unsafe { info.si_value() }.sival_ptr.addr())
            }
            _ => return None,
        };
        ours.iter().copied().find(|trap| trap.word() == word)
    }
}

/// Whether a signal carries neither sender nor word. So a question arrives if the user's
/// signal queue is full (design/contract.md `.trap.bare`).
fn is_bare(info: &libc::siginfo_t) -> bool {
    // SAFETY: sent, so it has a sender.
    info.si_code == SI_USER && unsafe { info.si_pid() == 0 && info.si_uid() == 0 }
}

/// The question that this thread is about to get, if the trap is bare and may be it.
fn expected_question(info: &libc::siginfo_t) -> Option<Trap> {
    (is_bare(info) && current::slot().is_some_and(|slot| slot.call_site.take_question()))
        .then_some(Trap::CallSite)
}

/// The same information as of a perf event, which it must be.
fn perf_info(info: &libc::siginfo_t) -> &PerfInfo {
    // SAFETY: the kernel lays perf events out so, and all bits are good in its fields.
    unsafe { &*ptr::from_ref(info).cast() }
}

/// The word that a fault event's traps are to carry.
pub(super) fn word_of(kind: FaultKind) -> usize {
    match kind {
        FaultKind::Minor => Trap::MinorFault.word(),
        FaultKind::Major => Trap::MajorFault.word(),
    }
}

/// Asks a thread of this process where it is.
pub(super) fn ask(thread: c_int) -> Result<(), Errno> {
    // SAFETY: both only return numbers of this process, and cannot fail.
    let (process, user) = unsafe { (libc::getpid(), libc::getuid()) };
    let sender = Sender { process, user, word: ptr::without_provenance_mut(Trap::CallSite.word()) };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let question = QueuedInfo { signal: libc::SIGTRAP, errno: 0, code: SI_QUEUE, sender };
    // SAFETY: the beginning of `info`, which has room for it and is as aligned.
    unsafe { info.as_mut_ptr().cast::<QueuedInfo>().write(question) };
    // SAFETY: a signal to a thread of this process, which handles it; `info` is initialised and valid to read.
    let code =
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, libc::SIGTRAP, info.as_ptr()) };
    if code == 0 { Ok(()) } else { Err(errno()) }
}

/// Handles the signal, once in a process, and lets it through to this thread.
pub(super) fn handle_traps() -> Result<(), Errno> {
    // A second thread waits until the handler is there.
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

/// Whether the handler that [`install`] installed is still in place.
pub(super) fn is_handler_ours() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: this only reads the action; `action` is valid to write, and is read only if it
    // was written.
    unsafe {
        libc::sigaction(libc::SIGTRAP, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == HANDLER as usize
    }
}

/// The signal's handler.
const HANDLER: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_trap;

fn install() -> Result<(), Errno> {
    // Known before our handler is there, so that it always finds it.
    foreign_trap::remember_handler()?;
    // SAFETY: a zeroed `sigaction` is a valid value: no flags, an empty mask.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = HANDLER as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER;
    // SAFETY: the action is initialised, and its handler has the type that SA_SIGINFO
    // asks for.
    match unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

extern "C" fn on_trap(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // First of all: whatever comes next may fault.
    let within_itself = current::begin_handling();
    // SAFETY: returns a pointer to this thread's own word, which is always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: this thread's own word, valid to read.
    let saved = unsafe { *errno };
    // SAFETY: the kernel passes what is known of the signal, valid during this call.
    let known = unsafe { &*info };
    match Trap::of(known).or_else(|| expected_question(known)) {
        None => {
            // What the program's handler does is the program's.
            current::end_handling(false);
            foreign_trap::pass_on(signal, info, context);
            current::begin_handling();
        }
        Some(Trap::MinorFault) if within_itself => on_own_fault(ViolationClass::MinorFault),
        Some(Trap::MajorFault) if within_itself => on_own_fault(ViolationClass::MajorFault),
        Some(Trap::MinorFault) => on_fault(ViolationClass::MinorFault, known, context),
        Some(Trap::MajorFault) => on_fault(ViolationClass::MajorFault, known, context),
        Some(Trap::CallSite) => on_question(context, within_itself),
    }
    // SAFETY: this thread's own word, valid to write, which nothing else refers to.
    unsafe { *errno = saved };
    current::end_handling(within_itself);
}

/// A fault of the handler itself.
fn on_own_fault(class: ViolationClass) {
    if let Some(slot) = current::slot() {
        slot.overlap(class);
    }
}

fn on_fault(class: ViolationClass, info: &libc::siginfo_t, context: *mut c_void) {
    let address = perf_info(info).address.addr();
    let observation = Observation { address, ..Observation::new(class, 0) };
    current::observe_interrupted(observation, interrupted_at(context));
}

/// The handler makes no memory call, so no supervisor waits for an answer to a question within it. A walk that waits for
/// the loader's lock has no site: its wait is charged without one.
fn on_question(context: *mut c_void, within_itself: bool) {
    let Some(slot) = current::slot() else { return };
    slot.call_site.take_question();
    if !within_itself {
        slot.call_site.keep(&Site::interrupted(interrupted_at(context)));
    }
}

/// The instruction at which the signal came; zero on a target whose registers are not known here.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::slot::Slot;

    /// A trap with this code and word, from this process.
    fn info(code: c_int, process: c_int, word: usize) -> libc::siginfo_t {
        let sender = Sender { process, user: 0, word: ptr::without_provenance_mut(word) };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the beginning of `info`, which has room for it and is as aligned; zeroed
        // it is whole.
        unsafe {
            info.as_mut_ptr().cast::<QueuedInfo>().write(QueuedInfo { signal: 5, errno: 0, code, sender });
            info.assume_init()
        }
    }

    /// Where a perf event has its word, a queued signal has its own.
    #[test]
    fn only_our_own_traps_are_ours() {
        // SAFETY: asks for a number; cannot fail.
        let own = unsafe { libc::getpid() };
        let of = |code, process, trap: Trap| Trap::of(&info(code, process, trap.word()));
        assert!(matches!(of(TRAP_PERF, 0, Trap::MinorFault), Some(Trap::MinorFault)));
        assert!(matches!(of(TRAP_PERF, 0, Trap::MajorFault), Some(Trap::MajorFault)));
        assert!(matches!(of(libc::SI_QUEUE, own, Trap::CallSite), Some(Trap::CallSite)));
        assert!(of(libc::SI_QUEUE, own + 1, Trap::CallSite).is_none(), "of another process");
        assert!(of(libc::SI_QUEUE, own, Trap::MinorFault).is_none(), "a fault that was queued");
        assert!(of(TRAP_PERF, own, Trap::CallSite).is_none(), "a question of perf's");
        for code in [libc::SI_TKILL, libc::SI_USER, libc::TRAP_BRKPT, libc::SI_TIMER] {
            assert!(of(code, own, Trap::CallSite).is_none(), "{code}");
        }
        for word in [0, 1, 2, 3] {
            assert!(Trap::of(&info(TRAP_PERF, 0, word)).is_none(), "another's perf event");
            assert!(Trap::of(&info(libc::SI_QUEUE, own, word)).is_none());
        }
    }

    #[test]
    fn a_trap_without_a_sender_is_bare() {
        assert!(is_bare(&info(libc::SI_USER, 0, 0)));
        assert!(!is_bare(&info(libc::SI_USER, 1, 0)), "of a process");
        for code in [libc::SI_TKILL, libc::SI_QUEUE, libc::TRAP_BRKPT, TRAP_PERF] {
            assert!(!is_bare(&info(code, 0, 0)), "{code}");
        }
    }

    /// A bare trap is taken for a question if one was sent, and only once.
    #[test]
    fn only_a_thread_that_is_asked_takes_a_bare_trap_for_a_question() {
        let slot: &'static Slot = std::boxed::Box::leak(std::boxed::Box::new(Slot::new()));
        let bare = info(libc::SI_USER, 0, 0);
        slot.call_site.expect_question();
        assert!(expected_question(&bare).is_none(), "of a thread that is not registered");
        current::attach(slot, crate::words::detector_set::DetectorSet::empty());
        assert!(expected_question(&info(libc::SI_TKILL, 0, 0)).is_none(), "of another sender");
        assert!(matches!(expected_question(&bare), Some(Trap::CallSite)));
        assert!(expected_question(&bare).is_none(), "no thread asked again");
        current::detach(slot);
    }
}
