//! Processor time and processors.

use core::time::Duration;

fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor time that this thread has used: what else runs on the machine does
/// not count.
#[must_use]
pub fn thread_time() -> Duration {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The processor time that all threads of this process have used.
#[must_use]
pub fn process_time() -> Duration {
    time_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Keeps this thread on one processor, if that processor exists.
pub fn pin(processor: usize) {
    // SAFETY: all zero is a set of no processors.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: a valid set, and a number that fits it.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: zero means this thread; the set is valid.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}
