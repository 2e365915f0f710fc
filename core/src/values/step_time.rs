//! How long a step of a collection took, and how long it was allowed to.

use core::time::Duration;

/// The time of a step, by the clock of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// What it was allowed.
    pub allowed: Duration,
    /// What it took.
    pub taken: Duration,
}

impl StepTime {
    /// Whether the step had a limit and kept to it. A time whose nanoseconds do not fit in 64 bits, such as
    /// [`Duration::MAX`], is no limit: a step that may take any time is a whole collection.
    #[must_use]
    pub const fn is_in_time(self) -> bool {
        self.allowed_ns() != u64::MAX && self.taken_ns() <= self.allowed_ns()
    }

    /// The time allowed in nanoseconds; [`u64::MAX`] for no limit.
    #[must_use]
    pub const fn allowed_ns(self) -> u64 {
        nanoseconds(self.allowed)
    }

    /// The time taken in nanoseconds; [`u64::MAX`] if they do not fit.
    #[must_use]
    pub const fn taken_ns(self) -> u64 {
        nanoseconds(self.taken)
    }
}

const fn nanoseconds(time: Duration) -> u64 {
    let all = time.as_nanos();
    if all > u64::MAX as u128 { u64::MAX } else { all as u64 }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_within_its_time_up_to_the_last_nanosecond() {
        let is_in_time = |allowed, taken| StepTime { allowed, taken }.is_in_time();
        let (zero, one) = (Duration::ZERO, Duration::from_nanos(1));
        assert!(is_in_time(zero, zero) && is_in_time(one, one) && is_in_time(one, zero));
        assert!(!is_in_time(zero, one) && !is_in_time(one, 2 * one));
    }

    #[test]
    fn a_time_without_end_is_no_limit() {
        let longest = Duration::from_nanos(u64::MAX - 1);
        for (allowed, is_limit) in
            [(longest, true), (Duration::from_nanos(u64::MAX), false), (Duration::MAX, false)]
        {
            let time = StepTime { allowed, taken: Duration::from_secs(1) };
            assert_eq!(time.is_in_time(), is_limit, "{time:?}");
            assert_eq!(time.allowed_ns() == u64::MAX, !is_limit, "{time:?}");
        }
        let time = StepTime { allowed: longest, taken: Duration::MAX };
        assert_eq!((time.is_in_time(), time.taken_ns()), (false, u64::MAX));
    }
}
