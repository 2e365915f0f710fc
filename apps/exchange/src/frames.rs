//! Messages in files and in packets (design/exchange.md `.frames`).
//!
//! In a file as it is published for a day, each message has its length in front, two bytes, big-endian. In a capture, each
//! packet of MoldUDP64 has; in the packet are a session (10 bytes), the number of its first message (8) and how many there
//! are (2), then each message with its length as above. A packet of no messages is a heartbeat, one of 0xFFFF the end.
//! LOBSTER has a line for each message.

use core::fmt;

/// Bytes of a length.
const LENGTH: usize = 2;

/// Bytes in front of the messages of a packet.
const PACKET_HEADER: usize = 20;

/// The number of messages that says that a session ends.
const END_OF_SESSION: u16 = 0xffff;

/// How messages are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each message with its length.
    File,
    /// Packets of MoldUDP64, each with its length.
    Packets,
    /// Lines of LOBSTER (design/exchange.md `.lobster`).
    Lobster,
}

/// A message, and where in its input it begins.
#[derive(Clone, Copy, Debug)]
pub struct Framed<'b> {
    /// Counted from one, in each input.
    pub number: u64,
    pub offset: u64,
    pub bytes: &'b [u8],
}

/// Why there is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// The input ends within a message or a packet.
    Cut { has: usize, needs: usize },
    /// There are bytes behind the end of the day or the session.
    AfterEnd,
    /// A packet, or a message in it, is longer than what it is in.
    Packet { has: usize, needs: usize },
    /// The messages of a packet are shorter than the packet.
    Rest(usize),
    /// Messages are missing.
    Gap { expected: u64, is: u64 },
    /// Another session.
    Session,
}

impl BadFrame {
    /// Its name: one word for a kind of fault.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::AfterEnd => "after-end",
            Self::Packet { .. } => "packet",
            Self::Rest(_) => "rest",
            Self::Gap { .. } => "gap",
            Self::Session => "session",
        }
    }
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match *self {
            Self::Cut { has, needs } => write!(f, "the input ends after {has} of {needs} bytes"),
            Self::AfterEnd => f.write_str("there are bytes behind the end of the session"),
            Self::Packet { has, needs } => write!(f, "{needs} bytes in a packet that has {has} left"),
            Self::Rest(rest) => write!(f, "{rest} bytes of a packet are in no message"),
            Self::Gap { expected, is } => write!(f, "message {expected} should come, and it is {is}"),
            Self::Session => f.write_str("a packet of another session"),
        }
    }
}

/// Finds messages in blocks of whole frames. Between two blocks it remembers what comes next.
#[derive(Clone, Debug)]
pub struct Deframer {
    form: Form,
    /// Messages so far.
    number: u64,
    /// The session, and the number that its next message has.
    session: Option<([u8; 10], u64)>,
    /// Messages that packets had again, which were skipped.
    pub repeated: u64,
    is_over: bool,
}

impl Deframer {
    /// At the beginning of an input.
    pub const fn new(form: Form) -> Self {
        Self { form, number: 0, session: None, repeated: 0, is_over: false }
    }

    /// The messages of a block, which begins at that offset of the input. All of it has to be read before the next.
    pub const fn frames<'d, 'b>(&'d mut self, block: &'b [u8], offset: u64) -> Frames<'d, 'b> {
        Frames { deframer: self, rest: block, offset, packet: &[], left: 0, skip: 0 }
    }
}

/// The messages of a block. It ends after a fault.
pub struct Frames<'d, 'b> {
    deframer: &'d mut Deframer,
    rest: &'b [u8],
    /// Of the next byte, in the packet or else in the rest.
    offset: u64,
    packet: &'b [u8],
    /// Messages left in the packet.
    left: u16,
    /// How many of them are known already.
    skip: u64,
}

/// Takes what has its length in front.
#[inline(always)]
const fn take<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8], (usize, usize)> {
    let all = *bytes;
    let Some((length, rest)) = all.split_first_chunk::<LENGTH>() else { return Err((all.len(), LENGTH)) };
    let length = u16::from_be_bytes(*length) as usize;
    let Some((taken, rest)) = rest.split_at_checked(length) else { return Err((all.len(), LENGTH + length)) };
    *bytes = rest;
    Ok(taken)
}

impl<'b> Iterator for Frames<'_, 'b> {
    type Item = Result<Framed<'b>, (Framed<'b>, BadFrame)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.deframer.form, Form::File) {
            if self.rest.is_empty() {
                return None;
            }
            if self.deframer.is_over {
                return self.fail(BadFrame::AfterEnd);
            }
            return match take(&mut self.rest) {
                // A message without bytes is the end of the day.
                Ok([]) => {
                    self.deframer.is_over = true;
                    self.offset += LENGTH as u64;
                    self.next()
                }
                Ok(bytes) => Some(Ok(self.found(bytes))),
                Err((has, needs)) => self.fail(BadFrame::Cut { has, needs }),
            };
        }
        if matches!(self.deframer.form, Form::Lobster) {
            return self.next_line().map(Ok);
        }
        self.next_of_packet()
    }
}

impl<'b> Frames<'_, 'b> {
    #[inline(always)]
    const fn found(&mut self, bytes: &'b [u8]) -> Framed<'b> {
        self.deframer.number += 1;
        let framed = Framed { number: self.deframer.number, offset: self.offset, bytes };
        self.offset += (LENGTH + bytes.len()) as u64;
        framed
    }

    #[cold]
    const fn fail(&mut self, fault: BadFrame) -> Option<<Self as Iterator>::Item> {
        let at = Framed { number: self.deframer.number + 1, offset: self.offset, bytes: self.rest };
        self.deframer.is_over = true;
        (self.rest, self.packet, self.left) = (&[], &[], 0);
        Some(Err((at, fault)))
    }

    /// A line without its end; the last of an input may have none.
    fn next_line(&mut self) -> Option<Framed<'b>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|&byte| byte == b'\n').unwrap_or(self.rest.len());
        let (line, rest) = (&self.rest[..end], self.rest.get(end + 1..).unwrap_or_default());
        self.deframer.number += 1;
        let bytes = line.strip_suffix(b"\r").unwrap_or(line);
        let framed = Framed { number: self.deframer.number, offset: self.offset, bytes };
        self.offset += (self.rest.len() - rest.len()) as u64;
        self.rest = rest;
        Some(framed)
    }

    fn next_of_packet(&mut self) -> Option<<Self as Iterator>::Item> {
        loop {
            if self.left == 0 && !self.packet.is_empty() {
                return self.fail(BadFrame::Rest(self.packet.len()));
            }
            if self.left > 0 {
                self.left -= 1;
                match take(&mut self.packet) {
                    Err((has, needs)) => return self.fail(BadFrame::Packet { has, needs }),
                    Ok(bytes) if self.skip > 0 => {
                        self.skip -= 1;
                        self.deframer.repeated += 1;
                        self.offset += (LENGTH + bytes.len()) as u64;
                    }
                    Ok(bytes) => return Some(Ok(self.found(bytes))),
                }
                continue;
            }
            if self.rest.is_empty() {
                return None;
            }
            if self.deframer.is_over {
                return self.fail(BadFrame::AfterEnd);
            }
            match take(&mut self.rest) {
                Err((has, needs)) => return self.fail(BadFrame::Cut { has, needs }),
                Ok(packet) => {
                    if let Err(fault) = self.open(packet) {
                        return self.fail(fault);
                    }
                }
            }
        }
    }

    /// Begins with a packet.
    fn open(&mut self, packet: &'b [u8]) -> Result<(), BadFrame> {
        let Some((header, messages)) = packet.split_first_chunk::<PACKET_HEADER>() else {
            return Err(BadFrame::Packet { has: packet.len(), needs: PACKET_HEADER });
        };
        let (mut session, mut sequence) = ([0; 10], [0; 8]);
        session.copy_from_slice(&header[..10]);
        sequence.copy_from_slice(&header[10..18]);
        let first = u64::from_be_bytes(sequence);
        let count = u16::from_be_bytes([header[18], header[19]]);
        let (known, expected) = *self.deframer.session.get_or_insert((session, first));
        if known != session {
            return Err(BadFrame::Session);
        }
        if first > expected {
            return Err(BadFrame::Gap { expected, is: first });
        }
        let is_end = count == END_OF_SESSION;
        let count = if is_end { 0 } else { count };
        let next = first.saturating_add(u64::from(count)).max(expected);
        self.deframer.session = Some((session, next));
        self.deframer.is_over |= is_end;
        self.offset += (LENGTH + PACKET_HEADER) as u64;
        (self.packet, self.left, self.skip) = (messages, count, (expected - first).min(u64::from(count)));
        Ok(())
    }
}

/// The length of the whole frames that bytes begin with.
pub fn whole_frames(form: Form, bytes: &[u8]) -> usize {
    if form == Form::Lobster {
        return bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    }
    let mut rest = bytes;
    while take(&mut rest).is_ok() {}
    bytes.len() - rest.len()
}

/// Puts the messages of a file into packets of one session, each of at most that many bytes.
pub fn pack(file: &[u8], sequence: &mut u64, most: usize, out: &mut Vec<u8>) {
    let mut rest = file;
    while !rest.is_empty() {
        let (begin, mut count) = (rest, 0_u16);
        while count < 1_000 {
            let before = rest;
            if take(&mut rest).is_err() {
                return;
            }
            if begin.len() - rest.len() + PACKET_HEADER > most && count > 0 {
                rest = before;
                break;
            }
            count += 1;
            if rest.is_empty() {
                break;
            }
        }
        put_packet(*sequence, count, &begin[..begin.len() - rest.len()], out);
        *sequence += u64::from(count);
    }
}

/// Says that the session ends.
pub fn pack_end(sequence: u64, out: &mut Vec<u8>) {
    put_packet(sequence, END_OF_SESSION, &[], out);
}

fn put_packet(sequence: u64, count: u16, messages: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(PACKET_HEADER + messages.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(b"EXCHANGE01");
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(messages);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(messages: usize) -> Vec<u8> {
        (0..messages).flat_map(|at| [0, 3, b'x', (at >> 8) as u8, at as u8]).collect()
    }

    fn numbers(form: Form, blocks: &[&[u8]]) -> (Vec<u16>, Option<BadFrame>) {
        let (mut deframer, mut numbers, mut offset) = (Deframer::new(form), Vec::new(), 0);
        for block in blocks {
            for frame in deframer.frames(block, offset) {
                match frame {
                    Ok(framed) => {
                        assert_eq!(framed.number, numbers.len() as u64 + 1);
                        let at = (framed.offset - offset) as usize
                            + if form == Form::Lobster { 0 } else { LENGTH };
                        assert_eq!(&block[at..][..framed.bytes.len()], framed.bytes);
                        numbers.push(u16::from_be_bytes([framed.bytes[1], framed.bytes[2]]));
                    }
                    Err((_, fault)) => return (numbers, Some(fault)),
                }
            }
            offset += block.len() as u64;
        }
        (numbers, None)
    }

    #[test]
    fn both_forms_have_the_same_messages() {
        let file = file(3_000);
        let (mut packets, mut sequence) = (Vec::new(), 1);
        pack(&file, &mut sequence, 1_400, &mut packets);
        let heartbeat = packets.len();
        put_packet(sequence, 0, &[], &mut packets);
        pack_end(sequence, &mut packets);
        let expected: Vec<u16> = (0..3_000).collect();
        assert_eq!(numbers(Form::File, &[&file[..50], &file[50..]]), (expected.clone(), None));
        assert_eq!(numbers(Form::Packets, &[&packets]), (expected.clone(), None));
        assert_eq!(numbers(Form::Packets, &[&packets[..heartbeat]]), (expected.clone(), None));
        // Sent twice: known messages are skipped.
        let first = 2 + usize::from(u16::from_be_bytes([packets[0], packets[1]]));
        let twice = [&packets[..first], &packets[..]].concat();
        assert_eq!(numbers(Form::Packets, &[&twice]), (expected, None));
        let gap = [&packets[..first], &packets[2 * first..]].concat();
        assert!(matches!(numbers(Form::Packets, &[&gap]).1, Some(BadFrame::Gap { .. })));
        let after = [&packets[..], &packets[..first]].concat();
        assert_eq!(numbers(Form::Packets, &[&after]).1, Some(BadFrame::AfterEnd));
    }

    #[test]
    fn what_came_before_a_fault_is_found() {
        let file = file(10);
        assert_eq!(numbers(Form::File, &[&file[..48]]).0.len(), 9);
        assert_eq!(numbers(Form::File, &[&file[..48]]).1, Some(BadFrame::Cut { has: 3, needs: 5 }));
        assert_eq!(numbers(Form::File, &[&file[..46]]).1, Some(BadFrame::Cut { has: 1, needs: 2 }));
        let ended = [&file[..], &[0, 0]].concat();
        assert_eq!(numbers(Form::File, &[&ended]), ((0..10).collect(), None));
        let behind = [&ended[..], &[7]].concat();
        assert_eq!(numbers(Form::File, &[&behind]), ((0..10).collect(), Some(BadFrame::AfterEnd)));
        assert_eq!(whole_frames(Form::File, &file[..48]), 45);
    }

    #[test]
    fn lines_are_messages() {
        let file = b"x\x00\x00\nx\x00\x01\r\nx\x00\x02";
        assert_eq!(numbers(Form::Lobster, &[&file[..9], &file[9..]]), (vec![0, 1, 2], None));
        assert_eq!(whole_frames(Form::Lobster, file), 9);
        assert_eq!(whole_frames(Form::Lobster, b"x"), 0);
    }
}
