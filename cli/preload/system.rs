//! The calls of the C library that the preloaded library makes. It has no dependencies, because it is compiled
//! by itself.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::AtomicU32;

use crate::ring;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlerror() -> *const c_char;
    #[link_name = "abort"]
    fn end_by_signal() -> !;
    pub(crate) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn pthread_key_create(key: *mut u32, end: Option<unsafe extern "C" fn(*mut c_void)>) -> c_int;
    pub(crate) fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    pub(crate) fn getpid() -> c_int;
    fn __errno_location() -> *mut c_int;
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(descriptor: c_int) -> c_int;
    fn read(descriptor: c_int, into: *mut u8, size: usize) -> isize;
    fn getrlimit64(resource: c_int, limit: *mut [u64; 2]) -> c_int;
    fn posix_fallocate64(descriptor: c_int, from: i64, length: i64) -> c_int;
    fn mmap(
        at: *mut c_void,
        size: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn madvise(at: *mut c_void, size: usize, advice: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    static environ: *const *const c_char;
    static program_invocation_short_name: *const c_char;
}

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;
const EFBIG: c_int = 27;
const RLIMIT_FSIZE: c_int = 1;
const O_RDONLY: c_int = 0;
const O_RDWR: c_int = 2;
const O_CREAT: c_int = 0o100;
const O_EXCL: c_int = 0o200;
const O_CLOEXEC: c_int = 0o2_000_000;
const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;
const MADV_DONTFORK: c_int = 10;
const MADV_WIPEONFORK: c_int = 18;

#[cfg(target_arch = "x86_64")]
const SYS_FUTEX: c_long = 202;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
const SYS_FUTEX: c_long = 98;

/// The name of the program, without its folder; empty if the C library does not know it yet.
pub(crate) fn program() -> &'static CStr {
    // SAFETY: the C library sets it before threads can be made; a program that sets it as well does that when it begins.
    let name = unsafe { program_invocation_short_name };
    if name.is_null() {
        return c"";
    }
    // SAFETY: a text that ends with a zero. It is one of the program's arguments, and stays where it is.
    unsafe { CStr::from_ptr(name) }
}

/// The most memory that this program had resident, in KiB; zero if that is not known. The peak of `getrusage` may be that of
/// the program that this one was executed by.
pub(crate) fn peak_resident() -> u32 {
    let mut status = [0; 4096];
    // SAFETY: a text that ends with a zero; there is room for what is read.
    let length = unsafe {
        let file = open(c"/proc/self/status".as_ptr(), O_RDONLY | O_CLOEXEC);
        let length = read(file, status.as_mut_ptr(), status.len());
        close(file);
        length
    };
    let status = usize::try_from(length).ok().and_then(|length| status.get(..length)).unwrap_or_default();
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"VmHWM:"));
    let digits = line.unwrap_or_default().iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u32, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
}

/// The error number of this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library returns a valid place of this thread.
    unsafe { *__errno_location() }
}

pub(crate) fn set_errno(error: c_int) {
    // SAFETY: the C library returns a valid place of this thread.
    unsafe { *__errno_location() = error };
}

/// A library that this program has loaded already. It stays loaded from then on.
pub(crate) fn loaded(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a text that ends with a zero; nothing is loaded.
    let handle = unsafe { dlopen(name.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
    // The program asks for its own errors.
    // SAFETY: it has no conditions.
    unsafe { dlerror() };
    (!handle.is_null()).then_some(handle)
}

/// Ends the process.
pub(crate) fn abort() -> ! {
    // SAFETY: it has no conditions.
    unsafe { end_by_signal() }
}

/// Whether the environment can be read: before the C library has begun, it cannot.
pub(crate) fn has_environment() -> bool {
    // SAFETY: a word of the C library, which it sets once before it calls constructors.
    !unsafe { (&raw const environ).read_volatile() }.is_null()
}

/// The value of a variable of the environment, with its final zero.
pub(crate) fn variable<'a>(name: &CStr) -> Option<&'a CStr> {
    // SAFETY: a text that ends with a zero.
    let value = unsafe { getenv(name.as_ptr()) };
    // SAFETY: the environment's text ends with a zero; the caller copies it before it could change.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// The size that files of this process may have.
fn most_bytes_of_files() -> u64 {
    let mut limit = [u64::MAX; 2];
    // SAFETY: a valid place for two words, as which the C library has that structure. If it is refused, there is no limit.
    unsafe { getrlimit64(RLIMIT_FSIZE, &raw mut limit) };
    limit[0]
}

/// Maps a file of this size, which other processes see; with `create` a new one, whose room is taken at once, so that no
/// later write fails. The descriptor is closed: what the program does to descriptors does not matter.
pub(crate) fn map_file(path: &CStr, size: usize, create: bool) -> Result<*mut c_void, c_int> {
    // A file beyond the limit would end the program with a signal.
    if create && most_bytes_of_files() < size as u64 {
        return Err(EFBIG);
    }
    let flags = O_RDWR | O_CLOEXEC | if create { O_CREAT | O_EXCL } else { 0 };
    // SAFETY: a text that ends with a zero.
    let descriptor = unsafe { open(path.as_ptr(), flags, 0o600) };
    if descriptor < 0 {
        return Err(errno());
    }
    // SAFETY: a descriptor of this function's own.
    let refused = if create { unsafe { posix_fallocate64(descriptor, 0, size as i64) } } else { 0 };
    let mapped = match refused {
        // SAFETY: a new mapping of an open file, anywhere.
        0 => {
            checked(unsafe { mmap(core::ptr::null_mut(), size, PROT_READ_WRITE, MAP_SHARED, descriptor, 0) })
        }
        error => Err(error),
    };
    // SAFETY: a descriptor of this function's own, used no more.
    unsafe { close(descriptor) };
    mapped
}

/// Maps memory that is all zero in a child after a fork, by whatever call.
pub(crate) fn map_wiped(size: usize) -> Result<*mut c_void, c_int> {
    // SAFETY: a new mapping, anywhere.
    let mapped =
        checked(unsafe { mmap(core::ptr::null_mut(), size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0) })?;
    // SAFETY: whole pages of this function's own.
    if unsafe { madvise(mapped, size, MADV_WIPEONFORK) } == 0 { Ok(mapped) } else { Err(errno()) }
}

/// Leaves a mapping out of children.
pub(crate) fn keep_from_children(mapped: *mut c_void, size: usize) {
    // SAFETY: whole pages of a mapping. If it is refused, a child has a mapping that it does not use.
    unsafe { madvise(mapped, size, MADV_DONTFORK) };
}

fn checked(mapped: *mut c_void) -> Result<*mut c_void, c_int> {
    if mapped.addr() == usize::MAX { Err(errno()) } else { Ok(mapped) }
}

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

/// Waits until another process wakes waiters of the word, which is a tenth of a second at most. Returns at once if the word
/// is not `value`.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let time = Timespec { seconds: 0, nanoseconds: 100_000_000 };
    // SAFETY: FUTEX_WAIT (0) with a valid word and a valid time.
    unsafe { syscall(SYS_FUTEX, word.as_ptr(), 0, value, &raw const time) };
}

/// Wakes the recorder.
pub(crate) fn ring_bell(control: &ring::Control) {
    control.bell.fetch_add(1, core::sync::atomic::Ordering::Release);
    // SAFETY: FUTEX_WAKE (1) of one waiter of a valid word.
    unsafe { syscall(SYS_FUTEX, control.bell.as_ptr(), 1, 1) };
}
