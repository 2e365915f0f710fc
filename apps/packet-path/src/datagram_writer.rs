//! Writes datagrams, and tests of the framing from both sides (design/packet-path.md `.framing`).

use crate::moldudp64::{END_OF_SESSION, FIRST, HEADER_BYTES, Header, LENGTH_BYTES, MESSAGES_MAX, Session};

/// Makes datagrams, one after the other in the same memory.
pub(crate) struct Writer {
    header: Header,
    bytes: Vec<u8>,
    size: usize,
}

impl Writer {
    /// For datagrams of at most `size` bytes.
    ///
    /// # Panics
    /// If a header takes more.
    pub(crate) fn new(session: Session, size: usize) -> Self {
        assert!(size >= HEADER_BYTES, "a datagram has a header");
        let header = Header { session, sequence: FIRST, count: 0 };
        let mut writer = Self { header, bytes: Vec::with_capacity(size), size };
        writer.begin(FIRST);
        writer
    }

    /// Begins a datagram whose first message has this number. The one before is forgotten.
    pub(crate) fn begin(&mut self, sequence: u64) {
        self.header = Header { sequence, count: 0, ..self.header };
        self.bytes.clear();
        self.bytes.resize(HEADER_BYTES, 0);
    }

    /// How long one more message can be; `None` if there can be none.
    pub(crate) fn room(&self) -> Option<usize> {
        let free = (self.size - self.bytes.len()).checked_sub(LENGTH_BYTES)?;
        (self.header.count < MESSAGES_MAX).then_some(free.min(usize::from(u16::MAX)))
    }

    /// Adds a message that consists of these parts. Returns whether there was room.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> bool {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.room().is_none_or(|room| room < length) {
            return false;
        }
        // The room is at most what a length can say.
        self.bytes.extend_from_slice(&(length as u16).to_be_bytes());
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.header.count += 1;
        true
    }

    /// The datagram so far. Without messages it only says that the sender is there, and which number comes next.
    pub(crate) fn finish(&mut self) -> &[u8] {
        self.bytes[..HEADER_BYTES].copy_from_slice(&self.header.bytes());
        &self.bytes
    }

    /// The datagram that ends the session in front of message `next`.
    pub(crate) fn end_of_session(&mut self, next: u64) -> &[u8] {
        self.begin(next);
        self.header.count = END_OF_SESSION;
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::moldudp64::{Datagram, Kind, Malformed, Request};

    const SESSION: Session = *b"0123456789";

    fn datagram(sequence: u64, messages: &[&[u8]]) -> Vec<u8> {
        let mut writer = Writer::new(SESSION, 9_000);
        writer.begin(sequence);
        messages.iter().for_each(|message| assert!(writer.push(&[message])));
        writer.finish().to_vec()
    }

    /// Against the description of the protocol, byte by byte.
    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let expected = b"0123456789\0\0\0\0\0\0\x01\x02\0\x02\0\x01a\0\x02bc";
        assert_eq!(datagram(0x102, &[b"a", b"bc"]), expected);
        let parsed = Datagram::parse(expected).unwrap();
        assert_eq!((parsed.session, parsed.span(), parsed.kind), (SESSION, 0x102..0x104, Kind::Messages(2)));
        assert_eq!(parsed.messages().collect::<Vec<_>>(), [&b"a"[..], b"bc"]);
        let request = Request { session: SESSION, sequence: 7, count: 3 };
        assert_eq!(request.bytes(), *b"0123456789\0\0\0\0\0\0\0\x07\0\x03");
        assert_eq!(Request::parse(&request.bytes()), Some(request));
        let mut writer = Writer::new(SESSION, HEADER_BYTES);
        let end = Datagram::parse(writer.end_of_session(9)).unwrap();
        assert_eq!((end.kind, end.span()), (Kind::EndOfSession, 9..9));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let whole = datagram(1, &[b"abc", b""]);
        for bytes in 0..HEADER_BYTES {
            assert_eq!(Datagram::parse(&whole[..bytes]), Err(Malformed::Header { bytes }));
            assert_eq!(Request::parse(&whole[..bytes]), None);
        }
        for bytes in HEADER_BYTES..whole.len() {
            let index = u16::from(bytes >= HEADER_BYTES + LENGTH_BYTES + 3);
            assert_eq!(Datagram::parse(&whole[..bytes]), Err(Malformed::Message { index }));
        }
        assert_eq!(Datagram::parse(&[&whole[..], b"x"].concat()), Err(Malformed::Trailing { bytes: 1 }));
        let last = datagram(u64::MAX, &[b"a"]);
        assert_eq!(Datagram::parse(&last), Err(Malformed::Sequence { first: u64::MAX }));
        assert!(Datagram::parse(&datagram(u64::MAX - 1, &[b"a"])).is_ok());
        assert_eq!(Request::parse(&whole), None);
    }

    #[test]
    fn a_full_datagram_refuses_one_byte_more() {
        let mut writer = Writer::new(SESSION, HEADER_BYTES + 2 * LENGTH_BYTES + 5);
        assert!(writer.push(&[b"ab", b"c"]));
        assert_eq!(writer.room(), Some(2));
        assert!(!writer.push(&[b"abc"]));
        assert!(writer.push(&[b"ab"]) && !writer.push(&[]));
        assert_eq!(writer.room(), None);
        writer.begin(3);
        assert_eq!(Datagram::parse(writer.finish()).unwrap().span(), 3..3);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            sequence in 0..u64::MAX - 100,
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        ) {
            let slices: Vec<_> = messages.iter().map(Vec::as_slice).collect();
            let bytes = datagram(sequence, &slices);
            let read = Datagram::parse(&bytes).unwrap();
            prop_assert_eq!(read.span(), sequence..sequence + messages.len() as u64);
            prop_assert_eq!(read.messages().collect::<Vec<_>>(), slices);
        }

        /// Damaged datagrams are mostly refused; those that are not have all their messages.
        #[test]
        fn any_bytes_have_an_answer(
            mut bytes in prop::collection::vec(any::<u8>(), 0..60),
            count in 0..4_u16,
        ) {
            if let Some(place) = bytes.get_mut(HEADER_BYTES - 2..HEADER_BYTES) {
                place.copy_from_slice(&count.to_be_bytes());
            }
            if let Ok(read) = Datagram::parse(&bytes) {
                let span = read.span();
                prop_assert_eq!(read.messages().count() as u64, span.end - span.start);
                let lengths: usize = read.messages().map(|message| LENGTH_BYTES + message.len()).sum();
                prop_assert_eq!(HEADER_BYTES + lengths, bytes.len());
            }
        }
    }
}
