//! The page of switches: what another process may change, and how it is checked
//! ([design/telemetry.md `.switches`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::{AtomicU64, Ordering};

use crate::format::{BYTE_ORDER, EventKind, SWITCHES_MAGIC, SWITCHES_WORDS, SwitchWord};
use crate::sample::Mean;
use crate::sampler::sampling::Sampling;

/// The value that leaves sampling, or its sites, to the program.
const LEFT_TO_THE_PROGRAM: u64 = 2;

/// The switches of telemetry. Any thread may change them at any time, and so may other processes if the
/// telemetry has a file.
///
/// Every value is checked when it is used: [`SwitchWord`] says what a value that is not allowed counts as.
#[derive(Clone, Copy, Debug)]
pub struct Switches<'w> {
    words: &'w [AtomicU64; SWITCHES_WORDS],
    /// Whether addresses are left out whatever the page says.
    without_addresses: bool,
}

/// The switches that do nothing until the program follows them: see [`Switches::of_program`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramSwitches {
    /// The mean that sampling was switched to: `None` if that is left to the program, `Some(None)` if it was
    /// switched off.
    pub sampling: Option<Option<Mean>>,
    /// Whether samplers walk stacks; `None` if that is left to the program.
    pub sites: Option<bool>,
    /// Whether points report every reserve and commit.
    pub point_log: bool,
}

impl<'w> Switches<'w> {
    /// The switches on this page. If `without_addresses` is true, addresses are left out whatever the page says.
    pub(crate) const fn new(words: &'w [AtomicU64; SWITCHES_WORDS], without_addresses: bool) -> Self {
        Self { words, without_addresses }
    }

    /// Sets all switches to their defaults.
    pub(crate) fn format(&self, process: u64, identity: u64) {
        self.set(SwitchWord::Magic, u64::from_ne_bytes(SWITCHES_MAGIC));
        self.set(SwitchWord::ByteOrder, BYTE_ORDER);
        self.set(SwitchWord::Process, process);
        self.set(SwitchWord::Identity, identity);
        self.set(SwitchWord::Events, u64::MAX);
        self.set(SwitchWord::WithoutAddresses, 0);
        self.set(SwitchWord::Sampling, LEFT_TO_THE_PROGRAM);
        self.set(SwitchWord::Mean, 0);
        self.set(SwitchWord::PointLog, 0);
        self.set(SwitchWord::Sites, LEFT_TO_THE_PROGRAM);
    }

    #[inline]
    fn get(&self, word: SwitchWord) -> u64 {
        self.words[word as usize].load(Ordering::Relaxed)
    }

    fn set(&self, word: SwitchWord, value: u64) {
        self.words[word as usize].store(value, Ordering::Relaxed);
    }

    /// Whether events of a kind are written.
    #[inline]
    #[must_use]
    pub fn is_on(&self, kind: EventKind) -> bool {
        self.get(SwitchWord::Events) & kind.bit() != 0
    }

    /// Switches events of a kind on or off.
    pub fn switch(&self, kind: EventKind, on: bool) {
        let word = &self.words[SwitchWord::Events as usize];
        if on {
            word.fetch_or(kind.bit(), Ordering::Relaxed);
        } else {
            word.fetch_and(!kind.bit(), Ordering::Relaxed);
        }
    }

    /// Whether addresses, and with them sites, are left out of events.
    #[inline]
    #[must_use]
    pub fn without_addresses(&self) -> bool {
        self.without_addresses | (self.get(SwitchWord::WithoutAddresses) != 0)
    }

    /// Leaves addresses out of events from here on, or no longer. If the program leaves them out
    /// [for good](crate::format::HeaderFlags::WITHOUT_ADDRESSES), this changes nothing.
    ///
    /// What was written before stays until it is overwritten. The number of a buffer stays the same.
    pub fn set_without_addresses(&self, on: bool) {
        self.set(SwitchWord::WithoutAddresses, u64::from(on));
    }

    /// Whether points report every reserve and commit: the switch for a
    /// [`PointLogger`](crate::PointLogger). A point looks at it in its slow path, which it takes after a trip.
    #[must_use]
    pub fn point_log(&self) -> bool {
        self.get(SwitchWord::PointLog) == 1
    }

    /// Has points whose logger asks [`point_log`](Self::point_log) report every reserve and commit, or no longer.
    pub fn set_point_log(&self, on: bool) {
        self.set(SwitchWord::PointLog, u64::from(on));
    }

    /// The mean that sampling was switched to here: `None` if that is left to the program,
    /// `Some(None)` if it was switched off.
    #[must_use]
    pub fn sampling(&self) -> Option<Option<Mean>> {
        match self.get(SwitchWord::Sampling) {
            0 => Some(None),
            1 => u32::try_from(self.get(SwitchWord::Mean)).ok().and_then(Mean::new).map(Some),
            _ => None,
        }
    }

    /// Switches sampling on with a mean, or off (`Some(None)`), or leaves it to the program (`None`).
    /// Samplers follow after [`apply_to`](Self::apply_to).
    pub fn set_sampling(&self, sampling: Option<Option<Mean>>) {
        let (value, mean) = match sampling {
            Some(None) => (0, 0),
            Some(Some(mean)) => (1, mean.bytes()),
            None => (LEFT_TO_THE_PROGRAM, 0),
        };
        self.set(SwitchWord::Mean, u64::from(mean));
        self.set(SwitchWord::Sampling, value);
    }

    /// Whether samplers walk stacks; `None` if that is left to the program.
    #[must_use]
    pub fn sites(&self) -> Option<bool> {
        match self.get(SwitchWord::Sites) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Has samplers walk stacks or not, or leaves it to the program (`None`). Samplers follow after
    /// [`apply_to`](Self::apply_to).
    pub fn set_sites(&self, sites: Option<bool>) {
        self.set(SwitchWord::Sites, sites.map_or(LEFT_TO_THE_PROGRAM, u64::from));
    }

    /// The switches that do nothing until the program follows them. Have a cold thread compare them, at intervals, with
    /// those that it followed last. If they are others, it [applies](ProgramSwitches::apply_to) them, and trips the
    /// points.
    ///
    /// ```
    /// # use tripoint_telemetry::{Clock, ProgramSwitches, Room, Sampling, Telemetry};
    /// # use tripoint_core::internal::AtomicU64;
    /// # static WORDS: [AtomicU64; 6 << 10] = [const { AtomicU64::new(0) }; 6 << 10];
    /// # let telemetry = Telemetry::in_memory(&WORDS, &Room::LEAST, Clock::NONE)?;
    /// static SAMPLING: Sampling = Sampling::off(0x5eed);
    ///
    /// let mut followed: Option<ProgramSwitches> = None;
    /// // … now and then:
    /// let switches = telemetry.switches().of_program();
    /// if followed.replace(switches) != Some(switches) {
    ///     switches.apply_to(&SAMPLING);
    ///     // … and trip each point: `tripper.trip()`
    /// }
    /// # Ok::<(), tripoint_telemetry::TelemetryError>(())
    /// ```
    #[must_use]
    pub fn of_program(&self) -> ProgramSwitches {
        ProgramSwitches { sampling: self.sampling(), sites: self.sites(), point_log: self.point_log() }
    }

    /// Switches `sampling` as these switches say, except what they leave to the program. Samplers do not follow
    /// the switches without this, so call it regularly on a cold thread, and trip points to have them follow at once.
    pub fn apply_to(&self, sampling: &Sampling) {
        self.of_program().apply_to(sampling);
    }
}

impl ProgramSwitches {
    /// Switches `sampling` as these switches say, except what they leave to the program.
    pub fn apply_to(&self, sampling: &Sampling) {
        if let Some(mean) = self.sampling
            && mean != sampling.mean()
        {
            sampling.set_mean(mean);
        }
        if let Some(sites) = self.sites {
            sampling.set_sites(sites);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    use super::*;

    fn page() -> [AtomicU64; SWITCHES_WORDS] {
        [const { AtomicU64::new(0) }; SWITCHES_WORDS]
    }

    #[test]
    fn switches_keep_what_they_are_set_to() {
        let page = page();
        let switches = Switches::new(&page, false);
        switches.format(7, 0);
        assert!(EventKind::ALL.iter().all(|&kind| switches.is_on(kind)));
        assert!(!switches.without_addresses() && !switches.point_log());
        assert_eq!(switches.sampling(), None);
        switches.switch(EventKind::Fill, false);
        assert!(!switches.is_on(EventKind::Fill) && switches.is_on(EventKind::Empty));
        switches.switch(EventKind::Fill, true);
        assert!(switches.is_on(EventKind::Fill));
        let sampling = Sampling::off(1);
        for mean in [Some(None), Some(Mean::new(77)), None] {
            switches.set_sampling(mean);
            assert_eq!(switches.sampling(), mean);
            sampling.set_mean(Mean::new(5));
            switches.apply_to(&sampling);
            assert_eq!(sampling.mean(), mean.unwrap_or(Mean::new(5)));
        }
        for sites in [Some(true), None, Some(false)] {
            switches.set_sites(sites);
            assert_eq!((switches.sites(), switches.of_program().sites), (sites, sites));
            sampling.set_sites(true);
            switches.apply_to(&sampling);
            assert_eq!(sampling.has_sites(), sites.unwrap_or(true));
        }
    }

    #[test]
    fn addresses_that_are_left_out_for_good_stay_out() {
        let page = page();
        for (for_good, switches) in [false, true].map(|for_good| (for_good, Switches::new(&page, for_good))) {
            switches.format(7, 0);
            assert_eq!(switches.without_addresses(), for_good);
            switches.set_without_addresses(true);
            assert!(switches.without_addresses());
            switches.set_without_addresses(false);
            assert_eq!(switches.without_addresses(), for_good);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_words_are_switches(words in proptest::collection::vec(any::<u64>(), 16), small in 0..4_u64) {
            let page = page();
            for (to, word) in page.iter().zip(&words) {
                to.store(*word, Ordering::Relaxed);
            }
            let switches = Switches::new(&page, false);
            switches.set(SwitchWord::Sampling, small);
            let mean = words[SwitchWord::Mean as usize];
            let allowed = mean > 0 && mean <= u64::from(u32::MAX);
            prop_assert_eq!(switches.sampling().is_some(), small == 0 || small == 1 && allowed);
            prop_assert_eq!(switches.sites().is_some(), words[SwitchWord::Sites as usize] < 2);
            prop_assert_eq!(switches.point_log(), words[SwitchWord::PointLog as usize] == 1);
            prop_assert!(switches.without_addresses() || words[SwitchWord::WithoutAddresses as usize] == 0);
        }
    }
}
