//! The messages that were sent, as long as they can be asked for again (design/packet-path.md `.sent`).

use core::ops::Range;

use crate::datagram_writer::Writer;
use crate::message::{Message, PREFIX_BYTES};
use crate::moldudp64::{FIRST, LENGTH_BYTES};

/// A message, without its number.
#[derive(Default)]
struct Stored {
    sent: u64,
    ends_record: bool,
    bytes: Vec<u8>,
}

/// The last messages of a session.
pub(crate) struct Sent {
    messages: Vec<Stored>,
    /// The number of the next message.
    next: u64,
}

impl Sent {
    /// A store for the last `capacity` messages.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { messages: core::iter::repeat_with(Stored::default).take(capacity).collect(), next: FIRST }
    }

    /// The number of the next message.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Whether a message is here.
    pub(crate) fn has(&self, number: u64) -> bool {
        (FIRST..self.next).contains(&number) && self.next - number <= self.messages.len() as u64
    }

    /// Stores the next message, and forgets the oldest one.
    pub(crate) fn push(&mut self, bytes: &[u8], ends_record: bool) {
        let next = self.next;
        let stored = self.stored(next);
        stored.ends_record = ends_record;
        stored.bytes.clear();
        stored.bytes.extend_from_slice(bytes);
        self.next += 1;
    }

    /// Says that these messages are sent now for the first time.
    pub(crate) fn stamp(&mut self, numbers: Range<u64>, now: u64) {
        numbers.for_each(|number| self.stored(number).sent = now);
    }

    /// The bytes that a message takes in a datagram.
    pub(crate) const fn size_of(bytes: usize) -> usize {
        LENGTH_BYTES + PREFIX_BYTES + bytes
    }

    /// Writes as many of these messages into a new datagram as there is room for, and returns how many.
    pub(crate) fn write(&self, numbers: Range<u64>, sent_again: bool, writer: &mut Writer) -> u64 {
        writer.begin(numbers.start);
        let is_written = |&number: &u64| {
            let Stored { sent, ends_record, bytes } = &self.messages[self.index(number)];
            let message = Message { sent: *sent, ends_record: *ends_record, sent_again, bytes };
            self.has(number) && writer.push(&[&message.prefix(), bytes])
        };
        numbers.take_while(is_written).count() as u64
    }

    fn index(&self, number: u64) -> usize {
        // The remainder is below a length.
        (number % self.messages.len() as u64) as usize
    }

    fn stored(&mut self, number: u64) -> &mut Stored {
        let index = self.index(number);
        &mut self.messages[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moldudp64::{Datagram, HEADER_BYTES};

    #[test]
    fn the_last_messages_can_be_had_again() {
        let mut sent = Sent::new(3);
        for (number, text) in (1..).zip([b"a", b"b", b"c", b"d"]) {
            sent.push(text, number != 2);
            sent.stamp(number..number + 1, number);
        }
        assert!(!sent.has(0) && !sent.has(1) && (2..5).all(|number| sent.has(number)) && !sent.has(5));
        // Room for two.
        let mut writer = Writer::new(*b"0123456789", HEADER_BYTES + 2 * Sent::size_of(1));
        assert_eq!(sent.write(1..5, true, &mut writer), 0);
        assert_eq!(sent.write(2..5, true, &mut writer), 2);
        let datagram = Datagram::parse(writer.finish()).unwrap();
        assert_eq!(datagram.span(), 2..4);
        let messages: Vec<_> = datagram.messages().map(|bytes| Message::parse(bytes).unwrap()).collect();
        let expected = |sent, ends_record, bytes| Message { sent, ends_record, sent_again: true, bytes };
        assert_eq!(messages, [expected(2, false, &b"b"[..]), expected(3, true, b"c")]);
        assert_eq!(sent.write(4..9, false, &mut writer), 1);
    }
}
