//! The clocks of the system.

use core::mem::MaybeUninit;

/// ns of the monotonic clock.
pub(crate) fn nanoseconds() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// ns since 1970; zero if the clock cannot be read.
pub(crate) fn unix() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// A clock in ns; zero before its beginning, or if it cannot be read.
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to memory for a whole `timespec`, which the call fills in if it succeeds.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: the call succeeded, so the value is initialised.
    let time = unsafe { time.assume_init() };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Whether the system takes its time from the processor's time-stamp counter. If so, it has found that the counter
/// is the same on all cores and does not stop.
pub(crate) fn has_steady_counter() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri)))
        && std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|source| source.trim_ascii() == b"tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "isolated from the system's clocks")]
    fn clocks_do_not_go_back() {
        let times: [u64; 3] = core::array::from_fn(|_| nanoseconds());
        assert!(times.is_sorted() && times[0] > 0);
        assert!(unix() > 1_700_000_000_000_000_000, "the clock is before the year 2023");
    }
}
