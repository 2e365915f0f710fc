//! What the kernel says of this process: its memory, its faults, and the processor time and interruptions of a thread.

use core::time::Duration;
use std::fs;

use crate::trace::status;

/// Bytes that are resident and no part of a file, counted page by page; none if the system does not say. The code of this
/// program, of which more comes into memory as it runs, is a part of a file.
pub(super) fn resident() -> Option<u64> {
    status::bytes("/proc/self/smaps_rollup", "Anonymous")
}

/// How often this thread had to make way for another one, though it had more to do; none if the system does not say.
pub(super) fn interruptions() -> Option<u64> {
    status::number("/proc/thread-self/status", "nonvoluntary_ctxt_switches")
}

/// Page faults of this process that needed no disk; none if the system does not say.
pub(super) fn minor_faults() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces in it.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(7)?.parse().ok()
}

/// The processor time that this thread has used: what else runs on the machine does not count.
#[cfg(target_os = "linux")]
pub(super) fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The time since the first call. It stands in for processor time, which this system is not asked for.
#[cfg(not(target_os = "linux"))]
pub(super) fn processor_time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}
