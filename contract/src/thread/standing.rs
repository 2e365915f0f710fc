//! What a thread is to the contract: how much its events matter, and what it is held to.

use crate::words::class::ViolationClass;

/// How much a thread's events matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Mode {
    /// Events are counted.
    Counting,
    /// Events are counted and recorded with their site. They are no violations.
    Rehearsal,
    /// Events are violations.
    Armed,
}

/// As what a thread is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Bound by the contract.
    Hot,
    /// Held to a budget.
    Cold,
}

/// What a cold thread may do in a period: so much of all classes together, except of those that have a limit of their own.
///
/// By default a cold thread may collect no heap, and cause one event of the rest a minute. One that is to do more, for
/// example to log, has a budget of its own:
///
/// ```
/// use tripoint_contract::{Budget, ViolationClass};
///
/// let second = 1_000_000_000;
/// let logger = Budget::new(10_000, 1 << 20, second).with(ViolationClass::Growth, 1);
/// assert_eq!(logger.of(ViolationClass::Growth), Some(1));
/// assert_eq!(logger.of(ViolationClass::Alloc), None); // one of the 10,000
/// assert_eq!(Budget::default().of(ViolationClass::Collection), Some(0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Events of all classes without a limit of their own.
    pub events: usize,
    /// Bytes of these classes.
    pub bytes: usize,
    /// The length of the period, in ns.
    pub period: u64,
    /// The most events of each class; `usize::MAX` if it has no limit of its own.
    classes: [usize; ViolationClass::COUNT],
}

impl Budget {
    /// The number of words that a budget is kept in.
    pub(crate) const WORDS: usize = 3 + ViolationClass::COUNT;

    /// At most `events` events with `bytes` bytes in a period of `period` ns, of all classes together.
    #[must_use]
    pub const fn new(events: usize, bytes: usize, period: u64) -> Self {
        Self { events, bytes, period, classes: [usize::MAX; ViolationClass::COUNT] }
    }

    /// The same, with a limit for a class alone: at most `events` events of it in a period, which count for nothing else.
    /// With `usize::MAX` the class has no limit of its own.
    #[must_use]
    pub const fn with(mut self, class: ViolationClass, events: usize) -> Self {
        self.classes[class.index()] = events;
        self
    }

    /// How many events of a class there may be in a period; `None` if it has no limit of its own.
    #[must_use]
    pub const fn of(&self, class: ViolationClass) -> Option<usize> {
        match self.classes[class.index()] {
            usize::MAX => None,
            events => Some(events),
        }
    }

    /// The budget as words. A period of more ns than a word holds is as good as one that long.
    pub(crate) fn to_words(self) -> [usize; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        let (first, classes) = words.split_at_mut(3);
        first.copy_from_slice(&[self.events, self.bytes, usize::try_from(self.period).unwrap_or(usize::MAX)]);
        classes.copy_from_slice(&self.classes);
        words
    }

    pub(crate) fn from_words([events, bytes, period, classes @ ..]: [usize; Self::WORDS]) -> Self {
        Self { events, bytes, period: period as u64, classes }
    }
}

impl Default for Budget {
    /// No collection ever, and at most one event of the rest a minute.
    fn default() -> Self {
        Self::new(1, usize::MAX, 60_000_000_000).with(ViolationClass::Collection, 0)
    }
}
