//! Watches what is missing, and asks for it (design/packet-path.md `.ask`).

use core::ops::{DerefMut, Range};
use core::time::Duration;
use std::time::Instant;

use rtrb::Producer;

use crate::moldudp64::{MESSAGES_MAX, Request};
use crate::sender::SESSION;
use crate::window::{Slot, Window};

/// How long messages may be late before they are asked for.
const PATIENCE: Duration = Duration::from_micros(500);

/// How long an answer may take before messages are asked for again.
const ANSWER_TIME: Duration = Duration::from_millis(5);

/// How long what is missing may not come, however often it is asked for.
const GAP_MAX: Duration = Duration::from_secs(2);

/// Watches what is missing in a window.
pub(crate) struct GapWatch {
    /// To the thread that sends requests.
    requests: Producer<Request>,
    /// When all that is missing is asked for, if something is.
    ask_at: Option<Instant>,
    /// When what was not asked for yet is, if there may be such.
    ask_new_at: Option<Instant>,
    /// What is missing in front of this number was asked for before.
    asked_until: u64,
    /// Which message has been missing, and since when.
    missing: Option<(u64, Instant)>,
    asked_for: u64,
}

impl GapWatch {
    pub(crate) const fn new(requests: Producer<Request>) -> Self {
        Self { requests, ask_at: None, ask_new_at: None, asked_until: 0, missing: None, asked_for: 0 }
    }

    /// How many messages were asked for, each as often as it was.
    pub(crate) const fn asked_for(&self) -> u64 {
        self.asked_for
    }

    /// Looks whether messages are missing, and asks for them in time.
    ///
    /// # Errors
    /// The messages that did not come for too long.
    pub(crate) fn look<T, S>(&mut self, window: &Window<S>) -> Result<(), Range<u64>>
    where
        S: DerefMut<Target = [Slot<T>]>,
    {
        if !window.has_gap() {
            (self.ask_at, self.ask_new_at, self.missing) = (None, None, None);
            return Ok(());
        }
        let (now, expected) = (Instant::now(), window.expected());
        match self.missing {
            Some((number, since)) if number == expected => {
                if now - since > GAP_MAX {
                    return Err(window.gaps().next().unwrap_or(expected..expected + 1));
                }
            }
            _ => self.missing = Some((expected, now)),
        }
        let ask_at = *self.ask_at.get_or_insert(now + PATIENCE);
        if now >= ask_at {
            self.ask_at = Some(now + ANSWER_TIME);
            self.ask_from(window, expected);
        } else if window.belief().believed() > self.asked_until {
            // What is lost while other messages are asked for does not wait until these have come.
            let ask_new_at = *self.ask_new_at.get_or_insert(now + PATIENCE);
            if now >= ask_new_at {
                self.ask_from(window, self.asked_until);
            }
        }
        Ok(())
    }

    /// Asks for what is missing from number `first` on.
    fn ask_from<T, S: DerefMut<Target = [Slot<T>]>>(&mut self, window: &Window<S>, first: u64) {
        let gaps = window.gaps().map(|gap| gap.start.max(first)..gap.end);
        self.ask(gaps.filter(|gap| !gap.is_empty()));
        (self.asked_until, self.ask_new_at) = (window.belief().believed(), None);
    }

    /// Asks for messages. Another thread sends the requests.
    fn ask(&mut self, gaps: impl Iterator<Item = Range<u64>>) {
        for Range { mut start, end } in gaps {
            while start < end {
                let count = (end - start).min(u64::from(MESSAGES_MAX));
                let request = Request { session: SESSION, sequence: start, count: count as u16 };
                // If there is no room, the next round asks.
                if self.requests.push(request).is_err() {
                    return;
                }
                self.asked_for += count;
                start += count;
            }
        }
    }
}
