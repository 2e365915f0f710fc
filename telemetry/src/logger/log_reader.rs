//! Reads a log of points ([design/point-log.md `.file`](crate::design::point_log)).

#![forbid(unsafe_code)]

use core::fmt;
use std::io::{self, ErrorKind, Read};

use tripoint_core::Event;

use crate::format::{
    BYTE_ORDER, HEAD_WORDS, Head, LOG_HEADER_WORDS, LOG_MAGIC, LOG_VERSION, LogCheck, MAX_RECORD_WORDS,
    RecordKind, WORD_BYTES,
};
use crate::logger::encoded::Encoded;
use crate::numbering::thread_number;
use crate::reader::{Fields, RecordedEvent};

/// Reads a log that a [`PointLog`](crate::PointLog) wrote, event by event. It trusts nothing that it reads.
#[derive(Debug)]
pub struct LogReader<R> {
    from: R,
    check: LogCheck,
    /// The events so far.
    events: u64,
    is_over: bool,
}

/// Why a log cannot be read, or not further.
#[non_exhaustive]
pub enum LogError {
    /// The system refused to read.
    Io(io::Error),
    /// The file does not begin as a log does.
    Foreign,
    /// The log is of another version, or of a machine with another order of bytes.
    Version {
        /// The version, as this machine reads it.
        found: u64,
    },
    /// The log ends before its end was written.
    Truncated {
        /// The number of the event that is missing, from zero.
        event: u64,
    },
    /// An event is not what was written, or one before it was left out.
    Damaged {
        /// The number of the event, from zero.
        event: u64,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the log cannot be read: {error}"),
            Self::Foreign => f.write_str("this is no log of points: write one with a `PointLog`"),
            Self::Version { found } => write!(
                f,
                "this log is of version {found}, and this program reads version {LOG_VERSION}: use the program that wrote it"
            ),
            Self::Truncated { event } => write!(
                f,
                "the log has no event {event} and no end: its program did not end it, or the file is cut off"
            ),
            Self::Damaged { event } => {
                write!(f, "event {event} of the log is not what was written: copy or write the log again")
            }
        }
    }
}

tripoint_core::debug_as_text!(LogError: Io, Foreign, Version, Truncated, Damaged);

impl core::error::Error for LogError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl<R: Read> LogReader<R> {
    /// Reads what a log begins with. Pass a [`BufReader`](std::io::BufReader) around a file.
    ///
    /// # Errors
    /// [`LogError::Io`], [`LogError::Foreign`], [`LogError::Version`].
    pub fn open(mut from: R) -> Result<Self, LogError> {
        let mut header = [0; LOG_HEADER_WORDS];
        read_words(&mut from, &mut header, LogError::Foreign)?;
        match header {
            [magic, ..] if magic != u64::from_ne_bytes(LOG_MAGIC) => Err(LogError::Foreign),
            [_, LOG_VERSION, BYTE_ORDER] => {
                Ok(Self { from, check: LogCheck::START, events: 0, is_over: false })
            }
            [_, found, _] => Err(LogError::Version { found }),
        }
    }

    /// The next event; none after the last. An event has the number of its record as serial number, and no time.
    ///
    /// # Errors
    /// [`LogError::Io`], [`LogError::Truncated`], [`LogError::Damaged`]. All events before are good.
    pub fn next_event(&mut self) -> Result<Option<RecordedEvent>, LogError> {
        if self.is_over {
            return Ok(None);
        }
        let event = self.events;
        let mut words = [0; MAX_RECORD_WORDS + 1];
        self.read_words(&mut words[..HEAD_WORDS])?;
        let head = Head::from_words([words[0], words[1], words[2]]);
        let len = usize::from(head.words);
        if !(HEAD_WORDS..=MAX_RECORD_WORDS).contains(&len) || head.serial != event {
            return Err(LogError::Damaged { event });
        }
        self.read_words(&mut words[HEAD_WORDS..=len])?;
        self.check = self.check.over(&words[..len]);
        if self.check.word() != words[len] {
            return Err(LogError::Damaged { event });
        }
        if head.kind == RecordKind::Padding {
            self.is_over = true;
            return Ok(None);
        }
        self.events += 1;
        let found = RecordedEvent::from_record(0, false, head, &words[..len]);
        match found.fields {
            Fields::Unknown { .. } => Err(LogError::Damaged { event }),
            _ => Ok(Some(found)),
        }
    }

    fn read_words(&mut self, words: &mut [u64]) -> Result<(), LogError> {
        read_words(&mut self.from, words, LogError::Truncated { event: self.events })
    }
}

/// Reads words, or returns `cut` if there are too few.
fn read_words(from: &mut impl Read, words: &mut [u64], cut: LogError) -> Result<(), LogError> {
    for word in words {
        let mut bytes = [0; WORD_BYTES];
        match from.read_exact(&mut bytes) {
            Ok(()) => *word = u64::from_ne_bytes(bytes),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(cut),
            Err(error) => return Err(LogError::Io(error)),
        }
    }
    Ok(())
}

impl RecordedEvent {
    /// An event of this thread, as a reader of a [`PointLog`](crate::PointLog) would find it: with serial number zero,
    /// and without a time and a site. Buffers are addresses.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        let encoded = Encoded::new(event, &[], thread_number(), 0);
        let words = encoded.words();
        let head = Head::from_words(words.first_chunk().copied().unwrap_or_default());
        Self::from_record(0, false, head, words)
    }
}
