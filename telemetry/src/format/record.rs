//! Records: what they begin with, and how large they are
//! ([design/telemetry.md `.record`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use super::kinds::EventKind;

/// The words with which each record begins.
pub const HEAD_WORDS: usize = 3;

/// The most words of a record, its head included.
pub const MAX_RECORD_WORDS: usize = 64;

/// The most bytes of a text in a record; longer ones are cut off.
pub const MAX_TEXT_BYTES: usize = 64;

/// The most code addresses of a site; the innermost are kept.
pub const MAX_FRAMES: usize = 20;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// Fills a block up to its end: number 0. It consists of at least one word, the first of its
    /// head.
    Padding,
    /// The first record of each block: number 1. One word follows the head, the system's
    /// monotonic clock in ns at the record's time.
    Clock,
    /// An event.
    Event(EventKind),
    /// A kind that this version does not know. A reader shows its number and skips it.
    Unknown(u16),
}

impl RecordKind {
    /// The number in the head of a record.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Padding => 0,
            Self::Clock => 1,
            Self::Event(kind) => kind as u16,
            Self::Unknown(number) => number,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub const fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Padding,
            1 => Self::Clock,
            number => match EventKind::from_number(number) {
                Some(kind) => Self::Event(kind),
                None => Self::Unknown(number),
            },
        }
    }
}

/// What a record begins with, three words:
///
/// | word | bits | |
/// |---|---|---|
/// | 0 | 0 to 14 | the number of the [`RecordKind`] |
/// | 0 | 15 | whether addresses were left out |
/// | 0 | 16 to 31 | the words of the record, these three included |
/// | 0 | 32 to 63 | the thread |
/// | 1 | | the serial number |
/// | 2 | | the time |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The kind of the record.
    pub kind: RecordKind,
    /// Whether addresses were left out: fields that are addresses are zero, and there is no site.
    pub without_addresses: bool,
    /// The words of the record, its head included.
    pub words: u16,
    /// The number of the thread that wrote it: the system's, if the writer has the feature `linux`.
    pub thread: u32,
    /// How many events were written to the ring before this one. The difference to the number that a
    /// reader expects is how many it missed. A clock record has the number of the event that follows it.
    pub serial: u64,
    /// The time of the record, in ticks of the file's clock.
    pub time: u64,
}

/// The bit in a record's first word which says that addresses were left out.
const WITHOUT_ADDRESSES: u64 = 1 << 15;

impl Head {
    /// The head as words.
    #[inline]
    #[must_use]
    pub const fn to_words(self) -> [u64; HEAD_WORDS] {
        let left_out = if self.without_addresses { WITHOUT_ADDRESSES } else { 0 };
        let kind = self.kind.number() as u64 | left_out;
        [kind | (self.words as u64) << 16 | (self.thread as u64) << 32, self.serial, self.time]
    }

    /// The head that these words stand for. Any words stand for one.
    #[must_use]
    pub const fn from_words(words: [u64; HEAD_WORDS]) -> Self {
        let [first, serial, time] = words;
        Self {
            kind: RecordKind::from_number((first & (WITHOUT_ADDRESSES - 1)) as u16),
            without_addresses: first & WITHOUT_ADDRESSES != 0,
            words: (first >> 16) as u16,
            thread: (first >> 32) as u32,
            serial,
            time,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_words_are_a_head_and_the_same_words_again(words in any::<[u64; HEAD_WORDS]>()) {
            prop_assert_eq!(Head::from_words(words).to_words(), words);
        }
    }
}
