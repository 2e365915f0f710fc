//! The present time, in few instructions
//! ([design/telemetry.md `.clock`](crate::design::telemetry)).

use core::fmt;

use crate::format::ClockKind;

/// The clock that the times of events are from.
#[derive(Clone, Copy)]
pub struct Clock {
    kind: ClockKind,
    nanoseconds: fn() -> u64,
    unix: fn() -> u64,
}

/// A moment, and how fast ticks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) ticks: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) unix: u64,
    pub(crate) span_ticks: u64,
    pub(crate) span_nanoseconds: u64,
}

/// For how many ns ticks are compared with ns. The rate is exact to 1 in 10,000 if both clocks are read
/// within 200 ns of each other.
const SPAN_NANOSECONDS: u64 = 2_000_000;

/// How often clocks are read to have them read once without an interruption.
const READINGS: usize = 16;

impl Clock {
    /// No clock: all times are zero.
    pub const NONE: Self = Self { kind: ClockKind::None, nanoseconds: || 0, unix: || 0 };

    /// A clock that the program provides, in ns since any moment. It is read for each event, on the thread
    /// that reports the event, also in signal and interrupt handlers.
    #[must_use]
    pub const fn new(nanoseconds: fn() -> u64) -> Self {
        Self { kind: ClockKind::Nanoseconds, nanoseconds, unix: || 0 }
    }

    /// The system's clock: the processor's time-stamp counter if the system takes its own time from
    /// that, and the monotonic clock otherwise.
    #[cfg(tripoint_on_linux)]
    fn system() -> Self {
        use crate::native::clock::{has_steady_counter, nanoseconds, unix};
        let kind = if has_steady_counter() { ClockKind::Ticks } else { ClockKind::Nanoseconds };
        Self { kind, nanoseconds, unix }
    }

    pub(crate) fn kind(&self) -> ClockKind {
        self.kind
    }

    /// The present time.
    #[inline]
    pub(crate) fn ticks(&self) -> u64 {
        match self.kind {
            ClockKind::Ticks => time_stamp_counter(),
            ClockKind::Nanoseconds => (self.nanoseconds)(),
            ClockKind::None => 0,
        }
    }

    /// Whether [`quick_ticks`](Self::quick_ticks) is the present time.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn is_quick(&self) -> bool {
        self.kind == ClockKind::Ticks
    }

    /// The present time, in two instructions, if [`is_quick`](Self::is_quick).
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn quick_ticks() -> u64 {
        time_stamp_counter()
    }

    /// The present time in ticks and in ns, `now` being what [`ticks`](Self::ticks) has just returned: a clock of
    /// the program is not read again.
    pub(crate) fn both(&self, now: u64) -> (u64, u64) {
        match self.kind {
            ClockKind::Ticks => (time_stamp_counter(), (self.nanoseconds)()),
            ClockKind::Nanoseconds | ClockKind::None => (now, now),
        }
    }

    /// The present moment, and how fast ticks go. This takes 2 ms if ticks are not ns.
    pub(crate) fn anchor(&self) -> Anchor {
        let (ticks, nanoseconds, unix) = self.moment();
        let (mut span_ticks, mut span_nanoseconds) = (1, 1);
        if self.kind == ClockKind::Ticks {
            while (self.nanoseconds)().saturating_sub(nanoseconds) < SPAN_NANOSECONDS {}
            let (later_ticks, later, _) = self.moment();
            span_ticks = later_ticks.saturating_sub(ticks).max(1);
            span_nanoseconds = later.saturating_sub(nanoseconds).max(1);
        }
        Anchor { ticks, nanoseconds, unix, span_ticks, span_nanoseconds }
    }

    /// The present time in ticks, in ns and as the time of day. Of some readings it is the one that took least
    /// time: the thread may be interrupted within any of them.
    fn moment(&self) -> (u64, u64, u64) {
        let reading = |_| {
            let (ticks, nanoseconds) = self.both(self.ticks());
            let unix = (self.unix)();
            (self.ticks().saturating_sub(ticks), (ticks, nanoseconds, unix))
        };
        (0..READINGS).map(reading).min_by_key(|(length, _)| *length).map_or((0, 0, 0), |(_, moment)| moment)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn time_stamp_counter() -> u64 {
    // SAFETY: every processor of this architecture has the instruction, and it changes no memory. A
    // system that forbids it stops the process: Linux does so only if the process asks for that.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// No clock uses this.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn time_stamp_counter() -> u64 {
    0
}

impl Default for Clock {
    /// The system's clock with the feature `linux`, and no clock otherwise.
    fn default() -> Self {
        #[cfg(tripoint_on_linux)]
        return Self::system();
        #[cfg(not(tripoint_on_linux))]
        Self::NONE
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.kind).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_the_program_is_in_nanoseconds() {
        let clock = Clock::new(|| 7);
        assert_eq!((clock.ticks(), clock.both(7), clock.kind()), (7, (7, 7), ClockKind::Nanoseconds));
        let anchor = clock.anchor();
        assert_eq!((anchor.span_ticks, anchor.span_nanoseconds, anchor.unix), (1, 1, 0));
        assert_eq!((Clock::NONE.ticks(), Clock::NONE.both(0)), (0, (0, 0)));
    }

    /// (design/telemetry.md `.clock`)
    #[test]
    fn a_moment_is_the_reading_that_was_interrupted_least() {
        use tripoint_core::internal::{AtomicU64, Ordering::Relaxed};

        // Each reading of the clock takes 100 ns, and the first of the fifth pair 1 ns.
        static READ: AtomicU64 = AtomicU64::new(0);
        static NOW: AtomicU64 = AtomicU64::new(0);
        let clock = Clock::new(|| {
            let quick = READ.fetch_add(1, Relaxed) == 8;
            NOW.fetch_add(if quick { 1 } else { 100 }, Relaxed)
        });
        assert_eq!(clock.moment().0, 800);
        assert_eq!(READ.load(Relaxed), 2 * READINGS as u64);
    }
}
