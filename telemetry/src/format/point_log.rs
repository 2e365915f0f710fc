//! The log of points: a file of records, in the order of the calls that they report
//! ([design/point-log.md `.file`](crate::design::point_log)).

#![forbid(unsafe_code)]

use super::header::WORD_BYTES;

/// The first eight bytes of a log.
pub const LOG_MAGIC: [u8; WORD_BYTES] = *b"trpntlog";

/// The version of the format of logs.
pub const LOG_VERSION: u64 = 1;

/// The words before the first record: [`LOG_MAGIC`], [`LOG_VERSION`] and [`BYTE_ORDER`](super::BYTE_ORDER).
pub const LOG_HEADER_WORDS: usize = 3;

/// The word that follows each record of a log. It stands for all words from the beginning of the log up to there, so
/// that no word can change, and no record be left out, without its being noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCheck(u64);

impl LogCheck {
    /// Before the first record.
    pub const START: Self = Self(u64::from_ne_bytes(LOG_MAGIC));

    /// After these words.
    #[must_use]
    pub fn over(self, words: &[u64]) -> Self {
        // Each step is reversible, so two logs that differ in one word differ in all checks from there on.
        Self(
            words.iter().fold(self.0, |check, word| {
                (check ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            }),
        )
    }

    /// The word.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }
}
