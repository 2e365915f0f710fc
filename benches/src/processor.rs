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

/// The minor page faults of this thread so far.
#[must_use]
pub fn page_faults() -> u64 {
    // SAFETY: all zero is a valid account.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: a valid place for the answer.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) }, 0);
    usage.ru_minflt as u64
}

/// What the processor calls itself, as far as the system knows.
#[must_use]
pub fn name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |key: &str| {
        let line = info.lines().find(|line| line.starts_with(key))?;
        line.split_once(": ").map(|(_, value)| value.to_owned())
    };
    let model = of("model name").unwrap_or_else(|| "unknown processor".to_owned());
    let [family, number] = ["cpu family", "model\t"].map(|key| of(key).unwrap_or_else(|| "?".to_owned()));
    format!("{model} (family {family}, model {number})")
}
