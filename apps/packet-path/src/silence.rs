//! How long a receiver waits for a datagram of its session (design/packet-path.md `.req.bounded`).

use core::time::Duration;
use std::time::Instant;

/// How long none may come.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Since when no datagram of the session has come. What is malformed, or of another session, breaks no silence.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    since: Option<Instant>,
}

impl Silence {
    /// A datagram of the session came.
    pub(crate) const fn end(&mut self) {
        self.since = None;
    }

    /// None came. Returns whether it lasts for too long.
    pub(crate) fn is_too_long(&mut self, now: Instant) -> bool {
        now - *self.since.get_or_insert(now) > SILENCE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_too_long_unless_something_ends_it() {
        let begin = Instant::now();
        let second = Duration::from_secs(1);
        let mut silence = Silence::default();
        assert!(!silence.is_too_long(begin) && !silence.is_too_long(begin + SILENCE_MAX));
        assert!(silence.is_too_long(begin + SILENCE_MAX + second));
        silence.end();
        assert!(!silence.is_too_long(begin + SILENCE_MAX + second));
        assert!(!silence.is_too_long(begin + 2 * SILENCE_MAX + second));
        assert!(silence.is_too_long(begin + 2 * SILENCE_MAX + 2 * second));
    }
}
