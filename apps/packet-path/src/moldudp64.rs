//! The framing of datagrams, MoldUDP64 (NASDAQ): messages with consecutive sequence numbers, several in a
//! datagram (design/packet-path.md `.framing`). It needs no memory but the datagram's.

use core::fmt;
use core::ops::Range;

/// The bytes of a session's name.
pub(crate) const SESSION_BYTES: usize = 10;

/// The bytes in front of the messages of a datagram. A request is as long.
pub(crate) const HEADER_BYTES: usize = SESSION_BYTES + 8 + 2;

/// The bytes in front of each message: its length.
pub(crate) const LENGTH_BYTES: usize = 2;

/// The count of messages that says that the session is over.
pub(crate) const END_OF_SESSION: u16 = u16::MAX;

/// The most messages of a datagram, and the most that can be asked for at once.
pub(crate) const MESSAGES_MAX: u16 = END_OF_SESSION - 1;

/// Which session a datagram belongs to.
pub(crate) type Session = [u8; SESSION_BYTES];

/// The sequence number of the first message of a session.
pub(crate) const FIRST: u64 = 1;

/// Why bytes are no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// There are fewer bytes than the header takes.
    Header { bytes: usize },
    /// A message ends behind the datagram.
    Message { index: u16 },
    /// There are bytes behind the last message.
    Trailing { bytes: usize },
    /// The sequence numbers of its messages would not fit.
    Sequence { first: u64 },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { bytes } => {
                write!(f, "{bytes} bytes are fewer than the {HEADER_BYTES} of a header")
            }
            Self::Message { index } => write!(f, "message {index} ends behind the datagram"),
            Self::Trailing { bytes } => write!(f, "there are {bytes} bytes behind the last message"),
            Self::Sequence { first } => write!(f, "sequence number {first} is too high"),
        }
    }
}

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It has messages, or none if it only says that the sender is there.
    Messages(u16),
    /// No message comes any more.
    EndOfSession,
}

/// A datagram whose messages are all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) session: Session,
    /// The number of its first message, or without one of the next.
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    body: &'a [u8],
}

/// What stands at the same place in datagrams and in requests.
pub(crate) struct Header {
    pub(crate) session: Session,
    pub(crate) sequence: u64,
    pub(crate) count: u16,
}

impl Header {
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (session, rest) = bytes.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (sequence, count) = (u64::from_be_bytes(*sequence), u16::from_be_bytes(*count));
        Some((Self { session: *session, sequence, count }, rest))
    }

    pub(crate) fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let (session, rest) = bytes.split_at_mut(SESSION_BYTES);
        session.copy_from_slice(&self.session);
        rest[..8].copy_from_slice(&self.sequence.to_be_bytes());
        rest[8..].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }
}

impl<'a> Datagram<'a> {
    /// Reads the payload of a UDP datagram.
    ///
    /// # Errors
    /// [`Malformed`] unless the bytes are one datagram, from the first to the last.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (Header { session, sequence, count }, body) =
            Header::parse(bytes).ok_or(Malformed::Header { bytes: bytes.len() })?;
        let (kind, messages) = match count {
            END_OF_SESSION => (Kind::EndOfSession, 0),
            count => (Kind::Messages(count), count),
        };
        sequence.checked_add(u64::from(messages)).ok_or(Malformed::Sequence { first: sequence })?;
        let mut rest = body;
        for index in 0..messages {
            (_, rest) = split_message(rest).ok_or(Malformed::Message { index })?;
        }
        if !rest.is_empty() {
            return Err(Malformed::Trailing { bytes: rest.len() });
        }
        Ok(Self { session, sequence, kind, body })
    }

    /// The sequence numbers of its messages.
    pub(crate) const fn span(&self) -> Range<u64> {
        match self.kind {
            Kind::Messages(count) => self.sequence..self.sequence + count as u64,
            Kind::EndOfSession => self.sequence..self.sequence,
        }
    }

    /// Its messages, the first one first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.body;
        core::iter::from_fn(move || {
            let (message, behind) = split_message(rest)?;
            rest = behind;
            Some(message)
        })
    }
}

/// The first message of `bytes`, and what is behind it.
fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Asks for messages again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) session: Session,
    /// The number of the first that is wanted.
    pub(crate) sequence: u64,
    pub(crate) count: u16,
}

impl Request {
    /// Reads the payload of a UDP datagram; `None` unless it is a request from the first byte to the last.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (Header { session, sequence, count }, rest) = Header::parse(bytes)?;
        rest.is_empty().then_some(Self { session, sequence, count })
    }

    pub(crate) fn bytes(self) -> [u8; HEADER_BYTES] {
        let Self { session, sequence, count } = self;
        Header { session, sequence, count }.bytes()
    }
}
