//! The system's numbers and names of threads.

/// The bytes of a name, its zero included.
pub(crate) const NAME_SIZE: usize = 16;

/// The number of the calling thread. No other thread of the system has it while this one lives.
pub(crate) fn number() -> u32 {
    // SAFETY: the call has no arguments, reads no memory of the process, and always succeeds.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Whether no thread of this process has this number.
pub(crate) fn has_ended(number: u32) -> bool {
    let Ok(number) = libc::pid_t::try_from(number) else { return false };
    // The error number is restored: this may run in a handler, and the code that it interrupted may be about
    // to read its own.
    //
    // SAFETY: `errno` is a word of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as `errno` is a word of this thread, no other thread writes to it.
    let before = unsafe { errno.read() };
    // SAFETY: signal zero is not sent; the call only says whether the thread exists.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, 0) };
    // SAFETY: no other thread writes to this thread's error number.
    let ended = answer != 0 && unsafe { errno.read() } == libc::ESRCH;
    // SAFETY: no other thread reads this thread's error number.
    unsafe { errno.write(before) };
    ended
}

/// The name of the calling thread, written to `bytes`; empty if it is no text.
pub(crate) fn name(bytes: &mut [u8; NAME_SIZE]) -> &str {
    // SAFETY: the calling thread lives; the call writes at most as many bytes as there are, and ends them with a zero.
    let answer =
        unsafe { libc::pthread_getname_np(libc::pthread_self(), bytes.as_mut_ptr().cast(), NAME_SIZE) };
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    if answer == 0 { core::str::from_utf8(&bytes[..end]).unwrap_or_default() } else { "" }
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
}
