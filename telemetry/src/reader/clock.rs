//! Converts ticks of a file's clock to ns ([design/telemetry.md `.clock`](crate::design::telemetry)).

use crate::format::{ClockKind, HeaderWord};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) ticks: u64,
    pub(super) nanoseconds: u64,
}

/// What the header says about the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    kind: ClockKind,
    anchor: Moment,
    /// The anchor in ns since 1970; zero if unknown.
    anchor_unix: u64,
    span_ticks: u64,
    /// The length of a tick in ns, by the span.
    rate: f64,
}

/// The clock at one place of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalClock {
    moment: Moment,
    rate: f64,
}

impl Clock {
    /// The clock of a header. A kind that is not known counts as none.
    pub(super) fn new(header: impl Fn(HeaderWord) -> u64) -> Self {
        let kinds = [ClockKind::Nanoseconds, ClockKind::Ticks];
        let span = (header(HeaderWord::SpanTicks), header(HeaderWord::SpanNanoseconds));
        let known = kinds.into_iter().find(|&kind| kind as u64 == header(HeaderWord::Clock));
        Self {
            kind: if span.0 == 0 || span.1 == 0 { ClockKind::None } else { known.unwrap_or(ClockKind::None) },
            anchor: Moment {
                ticks: header(HeaderWord::AnchorTicks),
                nanoseconds: header(HeaderWord::AnchorNanoseconds),
            },
            anchor_unix: header(HeaderWord::AnchorUnix),
            span_ticks: span.0,
            rate: span.1 as f64 / span.0 as f64,
        }
    }

    /// The clock from the beginning of the file on.
    pub(super) fn since_anchor(&self) -> LocalClock {
        LocalClock { moment: self.anchor, rate: self.rate }
    }

    /// The clock near a clock record. The further this is from the anchor, the more exactly
    /// the two of them show how long a tick is.
    pub(super) fn near(&self, moment: Moment) -> LocalClock {
        let ticks = moment.ticks.saturating_sub(self.anchor.ticks);
        let nanoseconds = moment.nanoseconds.saturating_sub(self.anchor.nanoseconds);
        let longer = ticks > self.span_ticks && nanoseconds > 0;
        LocalClock { moment, rate: if longer { nanoseconds as f64 / ticks as f64 } else { self.rate } }
    }

    /// A time in ns of the system's monotonic clock, if the file has a clock.
    pub(super) fn nanoseconds(&self, local: LocalClock, ticks: u64) -> Option<u64> {
        match self.kind {
            ClockKind::None => None,
            ClockKind::Nanoseconds => Some(ticks),
            ClockKind::Ticks => {
                let since = ticks.wrapping_sub(local.moment.ticks) as i64;
                let nanoseconds = (since as f64 * local.rate) as i64;
                Some(local.moment.nanoseconds.saturating_add_signed(nanoseconds))
            }
        }
    }

    /// When the file was made, in ns since 1970.
    pub(super) fn unix_of_anchor(&self) -> Option<u64> {
        (self.anchor_unix != 0).then_some(self.anchor_unix)
    }

    /// How long this many ticks are, in ns, if the file has a clock.
    pub(super) fn length(&self, ticks: u64) -> Option<u64> {
        match self.kind {
            ClockKind::None => None,
            ClockKind::Nanoseconds => Some(ticks),
            // This cast saturates.
            ClockKind::Ticks => Some((ticks as f64 * self.rate) as u64),
        }
    }

    /// The time of day in ns since 1970, at a time in ns of the system's monotonic clock.
    pub(super) fn unix(&self, nanoseconds: u64) -> Option<u64> {
        let since = nanoseconds.wrapping_sub(self.anchor.nanoseconds) as i64;
        (self.kind != ClockKind::None && self.anchor_unix != 0)
            .then(|| self.anchor_unix.saturating_add_signed(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(kind: ClockKind, span: (u64, u64)) -> Clock {
        Clock::new(|word| match word {
            HeaderWord::Clock => kind as u64,
            HeaderWord::AnchorTicks => 1_000,
            HeaderWord::AnchorNanoseconds => 5_000_000,
            HeaderWord::AnchorUnix => 1 << 60,
            HeaderWord::SpanTicks => span.0,
            HeaderWord::SpanNanoseconds => span.1,
            _ => 0,
        })
    }

    #[test]
    fn ticks_are_converted_by_the_span_and_then_by_the_record() {
        let clock = clock(ClockKind::Ticks, (300, 100));
        let anchor = clock.since_anchor();
        assert_eq!(clock.nanoseconds(anchor, 1_000 + 900), Some(5_000_300));
        assert_eq!(clock.nanoseconds(anchor, 1_000 - 900), Some(4_999_700), "a time before the anchor");
        // In truth a tick takes half a nanosecond.
        let local = clock.near(Moment { ticks: 1_001_000, nanoseconds: 5_500_000 });
        assert_eq!(clock.nanoseconds(local, 1_001_000 + 1_000), Some(5_500_500));
        assert_eq!(clock.unix(5_000_300), Some((1 << 60) + 300));
        assert_eq!((clock.length(900), clock.length(0)), (Some(300), Some(0)));
    }

    #[test]
    fn a_clock_that_makes_no_sense_converts_nothing_and_overflows_nowhere() {
        for clock in
            [clock(ClockKind::None, (1, 1)), clock(ClockKind::Ticks, (0, 1)), clock(ClockKind::Ticks, (1, 0))]
        {
            assert_eq!(clock.nanoseconds(clock.since_anchor(), 1), None);
            assert_eq!((clock.unix(1), clock.length(1)), (None, None));
        }
        let clock = clock(ClockKind::Ticks, (1, u64::MAX));
        for ticks in [0, 1, u64::MAX / 2, u64::MAX] {
            clock.nanoseconds(clock.near(Moment { ticks: u64::MAX, nanoseconds: 0 }), ticks);
            clock.unix(ticks);
        }
        assert_eq!(clock.nanoseconds(clock.since_anchor(), u64::MAX / 2), Some(5_000_000 + i64::MAX as u64));
    }
}
