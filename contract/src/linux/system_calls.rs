//! The calls of the kernel, as Linux has them.

use core::ffi::{c_int, c_long, c_ulong, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;
use std::boxed::Box;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::string::String;
use std::sync::OnceLock;
use std::thread::{self, Thread};
use std::vec::Vec;

use crate::linux::errno::errno;
use crate::linux::kernel::{Errno, FaultKind, Faults, Instruction, Kernel, Notification, Residence, Wait};
use crate::linux::trap;
use crate::linux::{binding, calls, children, signals};

/// The kernel that the program runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxKernel;

/// `perf_event_attr` as of Linux 5.13, the first with traps.
#[derive(Default)]
#[repr(C)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    unused: [u64; 9],
    signal_data: u64,
}

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_PAGE_FAULTS_MIN: u64 = 5;
const PERF_COUNT_SW_PAGE_FAULTS_MAJ: u64 = 6;
const PERF_SAMPLE_ADDR: u64 = 1 << 3;
const PERF_FLAG_FD_CLOEXEC: c_ulong = 1 << 3;
const DISABLED: u64 = 1 << 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGNAL_TRAP: u64 = 1 << 37;

const SECCOMP_SET_MODE_FILTER: c_long = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: c_long = 1 << 3;
const SECCOMP_USER_NOTIF_FLAG_CONTINUE: u32 = 1;
const SECCOMP_IOCTL_NOTIF_RECV: c_ulong = 0xc050_2100;
const SECCOMP_IOCTL_NOTIF_SEND: c_ulong = 0xc018_2101;

#[repr(C)]
struct SeccompProgram {
    size: u16,
    instructions: *const Instruction,
}

#[derive(Default)]
#[repr(C)]
struct SeccompNotification {
    id: u64,
    thread: u32,
    flags: u32,
    call: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct SeccompResponse {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// A function that runs before a fork, or after it in the parent or the child.
type AtFork = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    fn pthread_atfork(prepare: AtFork, parent: AtFork, child: AtFork) -> c_int;
}

/// The outcome of a call that returns zero for success.
fn answer(code: c_int) -> Result<(), Errno> {
    if code == 0 { Ok(()) } else { Err(errno()) }
}

/// A descriptor from a call that returns one.
fn descriptor(code: c_long) -> Result<OwnedFd, Errno> {
    let descriptor = c_int::try_from(code).map_err(|_| Errno(libc::EINVAL))?;
    if descriptor < 0 {
        return Err(errno());
    }
    // SAFETY: the call has just opened it, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn faults_of(who: c_int) -> Result<Faults, Errno> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for the kernel to write a `rusage` to.
    answer(unsafe { libc::getrusage(who, usage.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    let usage = unsafe { usage.assume_init() };
    let count = |faults: c_long| u64::try_from(faults).unwrap_or(0);
    Ok(Faults { minor: count(usage.ru_minflt), major: count(usage.ru_majflt) })
}

/// Opens an event of the calling thread's faults, with these additional flags.
fn open_fault_event(kind: FaultKind, flags: u64) -> Result<OwnedFd, Errno> {
    let attributes = PerfEventAttr {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<PerfEventAttr>() as u32,
        config: match kind {
            FaultKind::Minor => PERF_COUNT_SW_PAGE_FAULTS_MIN,
            FaultKind::Major => PERF_COUNT_SW_PAGE_FAULTS_MAJ,
        },
        sample_period: 1,
        sample_type: PERF_SAMPLE_ADDR,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | REMOVE_ON_EXEC | SIGNAL_TRAP | flags,
        signal_data: trap::word_of(kind) as u64,
        ..Default::default()
    };
    let (this_thread, any_core, no_group): (c_int, c_int, c_int) = (0, -1, -1);
    // SAFETY: the attributes are valid to read for the size they state.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_core,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    })
}

/// A thread's number as the kernel's calls want it.
fn thread_number(thread: usize) -> Result<c_int, Errno> {
    c_int::try_from(thread).map_err(|_| Errno(libc::ESRCH))
}

fn word(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Kernel for LinuxKernel {
    fn pin(&self, core: usize) -> Result<(), Errno> {
        if core >= libc::CPU_SETSIZE as usize {
            return Err(Errno(libc::EINVAL));
        }
        let mut cores = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: a zeroed set is an empty one, and the core is within its size.
        let cores = unsafe {
            libc::CPU_SET(core, cores.assume_init_mut());
            cores.assume_init()
        };
        // SAFETY: zero is the calling thread; the set is valid for its size.
        answer(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const cores) })
    }

    fn thread_id(&self) -> usize {
        // SAFETY: has no arguments and cannot fail.
        usize::try_from(unsafe { libc::gettid() }).unwrap_or(0)
    }

    fn stack_room(&self) -> Option<usize> {
        let anchor = 0_u8;
        let here = ptr::from_ref(core::hint::black_box(&anchor)).addr();
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        let (mut base, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the first call initialises the attributes, if it succeeds; the second
        // reads them and writes two words; the third frees what they hold.
        unsafe {
            if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
                return None;
            }
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut base, &raw mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        let base = base.addr();
        (base..base.saturating_add(size)).contains(&here).then(|| here - base)
    }

    fn thread_faults(&self) -> Result<Faults, Errno> {
        faults_of(libc::RUSAGE_THREAD)
    }

    fn process_faults(&self) -> Result<Faults, Errno> {
        faults_of(libc::RUSAGE_SELF)
    }

    fn handle_traps(&self) -> Result<(), Errno> {
        trap::handle_traps()
    }

    fn has_traps(&self) -> bool {
        trap::is_handler_ours()
    }

    fn prepare_children(&self) -> Result<(), Errno> {
        // Registering again would do nothing more.
        static SAID: OnceLock<Result<(), Errno>> = OnceLock::new();
        *SAID.get_or_init(|| {
            // SAFETY: the function lives as long as the process, and does only what a
            // child of many threads may do.
            match unsafe { pthread_atfork(None, None, Some(children::begin)) } {
                0 => Ok(()),
                code => Err(Errno(code)),
            }
        })
    }

    fn open_fault_event(&self, kind: FaultKind) -> Result<OwnedFd, Errno> {
        open_fault_event(kind, 0)
    }

    fn try_fault_event(&self) -> Result<(), Errno> {
        open_fault_event(FaultKind::Minor, DISABLED).map(drop)
    }

    fn send_trap(&self, thread: usize) -> Result<(), Errno> {
        trap::ask(thread_number(thread)?)
    }

    fn install_filter(&self, program: &[Instruction]) -> Result<OwnedFd, Errno> {
        let size = u16::try_from(program.len()).map_err(|_| Errno(libc::EINVAL))?;
        let program = SeccompProgram { size, instructions: program.as_ptr() };
        let (yes, none): (c_ulong, c_ulong) = (1, 0);
        // SAFETY: changes a flag of the calling thread only.
        answer(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, none, none, none) })?;
        // SAFETY: the program is valid to read for the size it states.
        descriptor(unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        })
    }

    fn start_thread(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Thread, Errno> {
        let start = || thread::Builder::new().name(name.into()).spawn(work);
        let started = signals::while_blocked(&signals::all(), start).map_err(number)?;
        Ok(started.thread().clone())
    }

    fn wait(&self, listener: &OwnedFd, patience: Option<u32>) -> Result<Wait, Errno> {
        loop {
            if let Some(wait) = wait_once(listener, patience)? {
                return Ok(wait);
            }
        }
    }

    fn resume(&self, listener: &OwnedFd, id: u64) -> Result<(), Errno> {
        let response = SeccompResponse { id, value: 0, error: 0, flags: SECCOMP_USER_NOTIF_FLAG_CONTINUE };
        // SAFETY: the response is valid to read.
        answer(unsafe {
            libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_SEND as _, &raw const response)
        })
    }

    fn touch_fresh_page(&self) -> Result<(), Errno> {
        let size = self.page_size();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
        let page = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(errno());
        }
        let mut residence = 0_u8;
        // SAFETY: one page that is ours, and a byte to write for it.
        let is_known = unsafe { libc::mincore(page, size, &raw mut residence) } == 0;
        // A process that locks all that it will map (MCL_FUTURE) has the page already.
        if is_known && residence & 1 == 1 {
            // SAFETY: the whole mapping, which is ours and holds nothing yet.
            unsafe {
                libc::munlock(page, size);
                libc::madvise(page, size, libc::MADV_DONTNEED);
            }
        }
        // SAFETY: the first byte of a page that is ours and writable.
        unsafe { page.cast::<u8>().write_volatile(1) };
        // SAFETY: the whole mapping, to which nothing else refers.
        answer(unsafe { libc::munmap(page, size) })
    }

    fn try_to_wait(&self) -> Result<(), Errno> {
        let (word, other) = (0_u32, 1_u32);
        let forever = ptr::null::<libc::timespec>();
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: a word that is valid to read; it never has the other value, so this returns at once.
        match answer(unsafe {
            libc::syscall(libc::SYS_futex, &raw const word, operation, other, forever) as c_int
        }) {
            Err(Errno(libc::EAGAIN)) => Ok(()),
            answer => answer,
        }
    }

    fn call_malloc(&self) {
        // SAFETY: freed once, with nothing in between.
        unsafe {
            let memory: *mut c_void = core::hint::black_box(libc::malloc(1));
            libc::free(memory);
        }
    }

    #[cfg(target_env = "gnu")]
    fn heap_in_use(&self) -> Option<usize> {
        // SAFETY: only reads the allocator's own numbers.
        let info = unsafe { libc::mallinfo2() };
        Some(info.uordblks + info.hblkhd)
    }

    #[cfg(not(target_env = "gnu"))]
    fn heap_in_use(&self) -> Option<usize> {
        None
    }

    fn keep_resident(&self, range: Range<usize>, how: Residence) -> Result<(), Errno> {
        let (start, size) = (ptr::without_provenance_mut::<c_void>(range.start), range.len());
        // SAFETY: whole pages of this process, whose contents do not change; pages that
        // have been unmapped meanwhile are refused.
        answer(unsafe {
            match how {
                Residence::Locked => libc::mlock(start, size),
                Residence::LockedOnceTouched => libc::mlock2(start, size, libc::MLOCK_ONFAULT as _),
                Residence::BroughtIn => libc::madvise(start, size, libc::MADV_POPULATE_READ),
            }
        })
    }

    fn raise_lock_limit(&self) -> Result<(), Errno> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: valid to write.
        answer(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) })?;
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: valid to read; lowers no limit.
        answer(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) })
    }

    #[cfg(target_env = "gnu")]
    fn trim_heap(&self) -> bool {
        // SAFETY: takes the number of bytes to keep. Whether it freed any does not matter.
        unsafe { libc::malloc_trim(0) };
        true
    }

    #[cfg(not(target_env = "gnu"))]
    fn trim_heap(&self) -> bool {
        false
    }

    fn page_size(&self) -> usize {
        // SAFETY: `sysconf` only reads its argument.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        std::fs::read(path).map_err(number)
    }

    fn read_into(&self, path: &str, buffer: &mut [u8]) -> Result<usize, Errno> {
        // The standard library keeps a short path on the stack.
        let mut file = std::fs::File::open(path).map_err(number)?;
        let mut size = 0;
        while size < buffer.len() {
            match file.read(&mut buffer[size..]) {
                Ok(0) => break,
                Ok(read) => size += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(number(error)),
            }
        }
        Ok(size)
    }

    fn binds_now(&self) -> bool {
        binding::binds_now()
    }

    fn tell(&self, mut text: &[u8]) -> Result<(), Errno> {
        while !text.is_empty() {
            // SAFETY: the text, valid to read.
            let written = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
            match usize::try_from(written) {
                Ok(0) => return Err(Errno(libc::EIO)),
                Ok(written) => text = &text[written..],
                Err(_) if errno() == Errno(libc::EINTR) => {}
                Err(_) => return Err(errno()),
            }
        }
        Ok(())
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

fn number(error: io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Waits as [`Kernel::wait`] does, unless a signal interrupts it.
fn wait_once(listener: &OwnedFd, patience: Option<u32>) -> Result<Option<Wait>, Errno> {
    let mut ready = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience = patience.map_or(-1, |time| c_int::try_from(time).unwrap_or(c_int::MAX));
    // SAFETY: one structure, valid to read and write.
    match unsafe { libc::poll(&raw mut ready, 1, patience) } {
        0 => return Ok(Some(Wait::TimedOut)),
        code if code < 0 => return interrupted(errno()),
        _ if ready.revents & libc::POLLIN == 0 => return Ok(Some(Wait::Ended)),
        _ => {}
    }
    let mut seen = SeccompNotification::default();
    // SAFETY: the notification is zeroed, as the call asks, and valid to write.
    let code = unsafe { libc::ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut seen) };
    if code != 0 {
        return interrupted(errno());
    }
    Ok(Some(Wait::Notified(Notification {
        id: seen.id,
        thread: word(seen.thread.into()),
        call: calls::native_number(seen.architecture, usize::try_from(seen.call).unwrap_or(0)),
        instruction: word(seen.instruction),
        arguments: [word(seen.arguments[0]), word(seen.arguments[1])],
    })))
}

/// A wait that was interrupted has found nothing yet; nor has one whose call has gone.
fn interrupted(error: Errno) -> Result<Option<Wait>, Errno> {
    if matches!(error.0, libc::EINTR | libc::ENOENT) { Ok(None) } else { Err(error) }
}
