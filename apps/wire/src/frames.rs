//! Frames with a number and a hash: whether each comes once, and whole.

use core::hash::Hasher;
use std::hash::DefaultHasher;

/// The port of all datagrams with a number.
pub const PORT: u16 = 26_000;

/// The bytes of a frame in front of its body: Ethernet, IPv6, UDP.
pub const HEADERS: usize = 62;

/// The bytes of the longest frame of an interface whose MTU is 1500.
pub const FRAME_MAX: usize = 1514;

/// The bytes of the shortest frame: headers, a number, a hash.
pub const FRAME_MIN: usize = HEADERS + 16;

/// A datagram to a port, with a body.
pub fn datagram(port: u16, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([17, 1]);
    for last in [1, 2] {
        frame.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    frame.extend(9_u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(body);
    frame
}

/// The frame with a number, of that many bytes.
pub fn frame(number: u64, bytes: usize) -> Vec<u8> {
    let filler: Vec<u8> =
        (0..bytes - FRAME_MIN).map(|place| (place as u64 * 31 + number * 7) as u8).collect();
    datagram(PORT, &[&number.to_le_bytes()[..], &hash(number, &filler).to_le_bytes(), &filler].concat())
}

/// A frame of that many bytes that is no datagram, and so has no number.
pub fn unnumbered(bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    frame.resize(bytes, 0x55);
    frame
}

/// The number of a frame that is whole; `None` if it has none, or is another datagram.
///
/// # Panics
/// If it is one, and is not whole.
pub fn number(frame: &[u8]) -> Option<u64> {
    let port = frame.get(56..58)?;
    if frame[12..14] != [0x86, 0xdd] || port != PORT.to_be_bytes() {
        return None;
    }
    let body = &frame[HEADERS..];
    if body.is_empty() {
        return None;
    }
    let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
    let number = word(0);
    assert_eq!(word(8), hash(number, &body[16..]), "frame {number} of {} bytes is not whole", frame.len());
    Some(number)
}

fn hash(number: u64, filler: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(number);
    hasher.write(filler);
    hasher.finish()
}

/// Which of a number of frames have come, each once.
#[derive(Debug)]
pub struct Seen {
    seen: Vec<bool>,
    /// How many.
    pub count: u64,
    /// The number of the one that came last.
    pub last: u64,
}

impl Seen {
    /// None of that many has come.
    pub fn new(frames: u64) -> Self {
        Self { seen: vec![false; frames as usize], count: 0, last: 0 }
    }

    /// Notes a frame, unless it has no number.
    ///
    /// # Panics
    /// If it came before, is not whole, or has a number that none has.
    pub fn note(&mut self, frame: &[u8]) {
        let Some(number) = number(frame) else { return };
        assert!(!core::mem::replace(&mut self.seen[number as usize], true), "frame {number} came twice");
        self.count += 1;
        self.last = number;
    }
}

/// The bytes of the frame with this number: from the shortest to the longest, in an order that does not repeat soon.
pub fn bytes_of(number: u64, most: usize) -> usize {
    FRAME_MIN + (number * 7_919 % (most - FRAME_MIN + 1) as u64) as usize
}
