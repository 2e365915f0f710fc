//! What happens to datagrams on the way, on purpose: they are dropped, come twice, or come late. The same seed disturbs the
//! same datagrams (design/packet-path.md `.disturbance`).

use std::collections::VecDeque;
use std::io;

use order_book::generator::Random;
use serde::Serialize;

use crate::cli::PerCent;

/// A datagram that comes late comes after one to this many others.
const LATE_MAX: u64 = 4;

/// How often a datagram is disturbed, and in which way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Odds {
    pub(crate) drop: PerCent,
    pub(crate) duplicate: PerCent,
    pub(crate) reorder: PerCent,
}

/// What happened to datagrams. `passed + dropped == made + duplicated`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Disturbed {
    /// Datagrams that were to be sent.
    pub(crate) made: u64,
    pub(crate) dropped: u64,
    /// Datagrams that were sent once more.
    pub(crate) duplicated: u64,
    /// Datagrams that were sent after later ones.
    pub(crate) reordered: u64,
    /// Datagrams that were sent, with all their copies.
    pub(crate) passed: u64,
}

/// A way that disturbs datagrams.
pub(crate) struct Disturbance {
    odds: Odds,
    random: Random,
    /// Datagrams that come late, with the number of those that come before.
    late: VecDeque<(u64, Vec<u8>)>,
    counts: Disturbed,
}

impl Disturbance {
    pub(crate) fn new(odds: Odds, seed: u64) -> Self {
        Self { odds, random: Random::new(seed), late: VecDeque::new(), counts: Disturbed::default() }
    }

    pub(crate) const fn counts(&self) -> Disturbed {
        self.counts
    }

    /// Sends a datagram, unless it is disturbed, and those that have been late for long enough.
    ///
    /// # Errors
    /// Those of `send`.
    pub(crate) fn pass(
        &mut self,
        datagram: &[u8],
        mut send: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.counts.made += 1;
        if self.happens(self.odds.drop) {
            self.counts.dropped += 1;
        } else {
            let copies = 1 + u64::from(self.happens(self.odds.duplicate));
            self.counts.duplicated += copies - 1;
            if self.happens(self.odds.reorder) {
                self.counts.reordered += 1;
                let after = 1 + self.random.below(LATE_MAX);
                self.late.extend((0..copies).map(|_| (after, datagram.to_vec())));
            } else {
                (0..copies).try_for_each(|_| self.send(datagram, &mut send))?;
            }
        }
        self.late.iter_mut().for_each(|(after, _)| *after = after.saturating_sub(1));
        self.send_late(|after| after == 0, send)
    }

    /// Sends all that is late still.
    ///
    /// # Errors
    /// Those of `send`.
    pub(crate) fn finish(&mut self, send: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.send_late(|_| true, send)
    }

    fn send_late(
        &mut self,
        is_due: impl Fn(u64) -> bool,
        mut send: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for _ in 0..self.late.len() {
            match self.late.pop_front() {
                Some((after, datagram)) if is_due(after) => self.send(&datagram, &mut send)?,
                waits => self.late.extend(waits),
            }
        }
        Ok(())
    }

    fn send(&mut self, datagram: &[u8], send: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.counts.passed += 1;
        send(datagram)
    }

    fn happens(&mut self, odds: PerCent) -> bool {
        odds.0 > 0.0 && (self.random.below(1 << 32) as f64) < odds.0 / 100.0 * (1_u64 << 32) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of 10,000 datagrams as they come out.
    fn pass(odds: Odds, seed: u64) -> (Vec<u32>, Disturbed) {
        let (mut way, mut out) = (Disturbance::new(odds, seed), Vec::new());
        let mut take = |datagram: &[u8]| {
            out.push(u32::from_be_bytes(datagram.try_into().unwrap()));
            Ok(())
        };
        (0..10_000_u32).for_each(|number| way.pass(&number.to_be_bytes(), &mut take).unwrap());
        way.finish(take).unwrap();
        (out, way.counts())
    }

    #[test]
    fn nothing_happens_by_itself() {
        let (out, counts) = pass(Odds::default(), 1);
        assert!(out.into_iter().eq(0..10_000));
        assert_eq!((counts.made, counts.passed), (10_000, 10_000));
    }

    #[test]
    fn what_happens_is_counted_and_the_same_for_a_seed() {
        let odds = Odds { drop: PerCent(10.0), duplicate: PerCent(5.0), reorder: PerCent(20.0) };
        let (out, counts) = pass(odds, 7);
        assert_eq!(counts.passed + counts.dropped, counts.made + counts.duplicated);
        assert_eq!(out.len() as u64, counts.passed);
        assert!((800..1_200).contains(&counts.dropped) && (300..600).contains(&counts.duplicated));
        assert!((1_500..2_100).contains(&counts.reordered));
        let overtaken = out.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(overtaken > 1_000, "{overtaken}");
        assert_eq!(out, pass(odds, 7).0);
        assert_ne!(out, pass(odds, 8).0);
    }

    #[test]
    fn all_can_be_dropped() {
        let odds = Odds { drop: PerCent(100.0), ..Odds::default() };
        assert_eq!(pass(odds, 1).1.dropped, 10_000);
    }
}
