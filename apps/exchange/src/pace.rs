//! A day at the pace at which it was recorded: what other work does to the caches between two messages is in the times
//! then (design/exchange.md `.run.pace`).

use std::time::Instant;

use zerocopy::FromBytes;

use crate::frames::Form;
use crate::itch::Header;
use crate::lobster::{self, JOINT};

/// When messages are due: as long after the first one as they were published after it, divided by the speed.
pub(crate) struct Pace {
    speed: f64,
    /// When the first one came, and the time that it has, in ns.
    first: Option<(Instant, u64)>,
    waited: u64,
}

impl Pace {
    pub(crate) const fn new(speed: f64) -> Self {
        Self { speed, first: None, waited: 0 }
    }

    /// How many messages had to wait.
    pub(crate) const fn waited(&self) -> u64 {
        self.waited
    }

    /// How long after the first one a message is due, in ns. One whose time is before the first is due at once.
    fn due(&self, first: u64, time: u64) -> u128 {
        (time.saturating_sub(first) as f64 / self.speed) as u128
    }

    /// Waits until a message is due, as a hot thread does that has a processor for itself: it never sleeps. A message
    /// without a time is due at once. A signal ends the wait.
    pub(crate) fn wait(&mut self, form: Form, bytes: &[u8], mut meanwhile: impl FnMut()) {
        let Some(time) = time_of(form, bytes) else { return };
        let (start, first) = *self.first.get_or_insert_with(|| (Instant::now(), time));
        let due = self.due(first, time);
        let is_early = || start.elapsed().as_nanos() < due && stop::signal().is_none();
        if is_early() {
            self.waited += 1;
        }
        while is_early() {
            meanwhile();
        }
    }
}

/// The time of a message, in ns since midnight.
fn time_of(form: Form, bytes: &[u8]) -> Option<u64> {
    match form {
        Form::Lobster => {
            let line = bytes.split(|&byte| byte == JOINT).next()?;
            lobster::parse(line).ok().map(|line| line.time)
        }
        Form::File | Form::Packets => {
            Header::ref_from_prefix(bytes).ok().map(|(header, _)| header.nanoseconds())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_when_it_is_due_and_never_before() {
        let line = |seconds: &str| format!("{seconds},1,7,100,1000000,1").into_bytes();
        let mut pace = Pace::new(10.0);
        let start = Instant::now();
        let mut waits = [0_u64; 4];
        for (second, waits) in ["34200.0", "34200.2", "34100.0", "no time"].iter().zip(&mut waits) {
            pace.wait(Form::Lobster, &line(second), || *waits += 1);
        }
        assert!(start.elapsed().as_millis() >= 20);
        assert_eq!(pace.waited(), 1);
        assert!(waits[1] > 0 && [waits[0], waits[2], waits[3]] == [0; 3], "{waits:?}");
    }

    #[test]
    fn messages_of_itch_have_a_time() {
        let mut day = Vec::new();
        crate::day::Writer::new(b'S', 0, 34_200_000_000_123).u8(b'Q').finish(&mut day);
        // Without the length in front.
        assert_eq!(time_of(Form::File, &day[2..]), Some(34_200_000_000_123));
        assert_eq!(time_of(Form::Packets, b"S"), None);
    }
}
