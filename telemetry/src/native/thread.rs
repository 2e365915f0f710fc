//! The system's numbers and names of threads.

use tripoint_core::internal::{AtomicU32, Ordering};

/// The bytes of a name, its zero included.
pub(crate) const NAME_SIZE: usize = 16;

/// The number of the calling thread, not zero. No other thread of the system has it while this one lives. If the system
/// refuses to tell a thread its number, the thread is counted instead.
pub(crate) fn number() -> u32 {
    // SAFETY: the call has no arguments, and reads no memory of the process.
    told_or_counted(keeping_errno(|| unsafe { libc::gettid() }))
}

/// The number that the system returned, or a number that the system uses for no thread. A sandbox may refuse the call:
/// all threads would then have the error as their number, and one might take the ring of another that still runs.
fn told_or_counted(told: libc::pid_t) -> u32 {
    static COUNTED: AtomicU32 = AtomicU32::new(0);
    let told = u32::try_from(told).ok().filter(|&told| told != 0);
    told.unwrap_or_else(|| COUNTED.fetch_add(1, Ordering::Relaxed) | 1 << 31)
}

/// Whether no thread of this process has this number. This is never certain of a thread that was counted.
pub(crate) fn has_ended(number: u32) -> bool {
    let Ok(number) = libc::pid_t::try_from(number) else { return false };
    keeping_errno(|| {
        // SAFETY: signal zero is not sent; the call only says whether the thread exists.
        let answer = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, 0) };
        // SAFETY: `errno` is a word of this thread, to which no other thread writes.
        answer != 0 && unsafe { libc::__errno_location().read() } == libc::ESRCH
    })
}

/// The name of the calling thread, written to `bytes`; empty if it is no text.
pub(crate) fn name(bytes: &mut [u8; NAME_SIZE]) -> &str {
    // SAFETY: the calling thread lives; the call writes at most as many bytes as there are, and ends them with a zero.
    let answer = keeping_errno(|| unsafe {
        libc::pthread_getname_np(libc::pthread_self(), bytes.as_mut_ptr().cast(), NAME_SIZE)
    });
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    if answer == 0 { core::str::from_utf8(&bytes[..end]).unwrap_or_default() } else { "" }
}

/// Makes a call, and restores the error number: this may run in a handler, and the code that it interrupted may be
/// about to read its own.
fn keeping_errno<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: `errno` is a word of this thread, which exists as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: no other thread writes to this thread's error number.
    let before = unsafe { errno.read() };
    let answer = call();
    // SAFETY: no other thread reads this thread's error number.
    unsafe { errno.write(before) };
    answer
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_a_number_and_a_name_until_it_ends() {
        let named = std::thread::Builder::new().name("named".into());
        let thread = named.spawn(|| {
            assert_eq!(name(&mut [0; NAME_SIZE]), "named");
            assert!(!has_ended(number()));
            number()
        });
        let other = thread.unwrap().join().unwrap();
        assert!(other != number());
        // The system needs a moment after the thread was joined.
        while !has_ended(other) {
            std::thread::yield_now();
        }
        assert!(!has_ended(number()));
    }

    #[test]
    fn threads_that_the_system_does_not_number_are_told_apart() {
        assert_eq!(told_or_counted(5), 5);
        // What the call returns in a sandbox.
        let refused = [-libc::EPERM, -libc::EPERM, -libc::ENOSYS, 0].map(told_or_counted);
        for (index, number) in refused.into_iter().enumerate() {
            assert!(!refused[..index].contains(&number) && !has_ended(number));
            assert!(libc::pid_t::try_from(number).is_err(), "the system may have a thread {number}");
        }
    }

    #[test]
    fn the_error_number_is_what_it_was() {
        // SAFETY: `errno` is a word of this thread.
        let set = |code| unsafe { libc::__errno_location().write(code) };
        let errno = || std::io::Error::last_os_error().raw_os_error();
        set(libc::ERANGE);
        keeping_errno(|| set(libc::EPERM));
        assert_eq!(errno(), Some(libc::ERANGE));
        // No thread has this number.
        assert!(has_ended(i32::MAX.unsigned_abs()));
        assert_eq!(errno(), Some(libc::ERANGE));
    }
}
