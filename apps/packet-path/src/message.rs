//! What is in a message: a piece of a record, and when it was sent (design/packet-path.md `.message`).

/// The bytes in front of the piece: the time, and what the piece is.
pub(crate) const PREFIX_BYTES: usize = 8 + 1;

/// The record goes on in the next message.
const GOES_ON: u8 = 1;

/// The message was sent before.
const SENT_AGAIN: u8 = 2;

/// A piece of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// When it was sent first, in ns since the run began.
    pub(crate) sent: u64,
    /// Whether the record ends with this piece.
    pub(crate) ends_record: bool,
    /// Whether the message was sent again because it was asked for.
    pub(crate) sent_again: bool,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a message; `None` if it is none.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (sent, rest) = bytes.split_first_chunk()?;
        let (&flags, bytes) = rest.split_first()?;
        if flags & !(GOES_ON | SENT_AGAIN) != 0 {
            return None;
        }
        let (ends_record, sent_again) = (flags & GOES_ON == 0, flags & SENT_AGAIN != 0);
        Some(Self { sent: u64::from_be_bytes(*sent), ends_record, sent_again, bytes })
    }

    /// What comes in front of the piece.
    pub(crate) fn prefix(&self) -> [u8; PREFIX_BYTES] {
        let mut prefix = [0; PREFIX_BYTES];
        let (sent, flags) = prefix.split_at_mut(8);
        sent.copy_from_slice(&self.sent.to_be_bytes());
        flags[0] = if self.ends_record { 0 } else { GOES_ON } | if self.sent_again { SENT_AGAIN } else { 0 };
        prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for (ends_record, sent_again) in [(false, false), (false, true), (true, false), (true, true)] {
            let message = Message { sent: 0x0102_0304_0506_0708, ends_record, sent_again, bytes: b"abc" };
            let bytes = [&message.prefix(), message.bytes].concat();
            assert_eq!(bytes[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(Message::parse(&bytes), Some(message));
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_none() {
        let whole = [0; PREFIX_BYTES];
        (0..PREFIX_BYTES).for_each(|bytes| assert_eq!(Message::parse(&whole[..bytes]), None));
        assert!(Message::parse(&whole).is_some_and(|message| message.bytes.is_empty()));
        assert_eq!(Message::parse(&[0, 0, 0, 0, 0, 0, 0, 0, 4]), None);
    }
}
