//! Why the hot thread of the packet path stopped.

use core::fmt;
use core::ops::Range;

use order_book::handoff::BLOCK_SIZE;
use order_book::hot_failure::HotFailure;

use crate::silence::SILENCE_MAX;

/// Why the hot thread stopped, as plain words.
#[derive(Debug)]
pub(crate) enum PathFailure {
    /// A record could not be kept.
    Record(HotFailure),
    /// These messages were lost, and did not come although they were asked for.
    Gap(Range<u64>),
    /// No datagram of the session comes any more, and it is not over. This many others came in the whole run.
    Silent { next: u64, malformed: u64 },
    /// What is in this message is no piece of a record.
    NoPiece { number: u64 },
    /// The record that ends with this message is longer than any may be.
    TooLong { number: u64 },
}

impl fmt::Display for PathFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(failure) => write!(f, "{}", order_book::failure::Failure::from(*failure)),
            Self::Gap(Range { start, end }) if end - start == 1 => {
                write!(f, "gap: message {start} was lost, and did not come again")
            }
            Self::Gap(Range { start, end }) => {
                write!(f, "gap: messages {start} to {} were lost, and did not come again", end - 1)
            }
            Self::Silent { next, malformed: 0 } => {
                write!(f, "nothing came for {} s; message {next} was next", SILENCE_MAX.as_secs())
            }
            Self::Silent { next, malformed } => write!(
                f,
                "no datagram of the session came for {} s, and {malformed} malformed ones in all; message {next} was \
                 next",
                SILENCE_MAX.as_secs()
            ),
            Self::NoPiece { number } => write!(f, "message {number} is no piece of a record"),
            Self::TooLong { number } => {
                write!(f, "the record that goes on in message {number} has more than {BLOCK_SIZE} bytes")
            }
        }
    }
}

impl From<HotFailure> for PathFailure {
    fn from(failure: HotFailure) -> Self {
        Self::Record(failure)
    }
}
