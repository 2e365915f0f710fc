//! The other end of a wire: a packet socket, which knows nothing of AF_XDP, and frames with a number and a hash.

use core::hash::Hasher;
use std::hash::DefaultHasher;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use wire::End;

use super::PORT;

/// The bytes of a frame in front of its body: Ethernet, IPv6, UDP.
const HEADERS: usize = 62;

/// The bytes of the shortest frame: headers, a number, a hash.
pub(crate) const FRAME_MIN: usize = HEADERS + 16;

/// A datagram to a port, with a body.
pub(crate) fn datagram(port: u16, body: &[u8]) -> Vec<u8> {
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
pub(crate) fn frame(number: u64, bytes: usize) -> Vec<u8> {
    let filler: Vec<u8> =
        (0..bytes - FRAME_MIN).map(|place| (place as u64 * 31 + number * 7) as u8).collect();
    datagram(PORT, &[&number.to_le_bytes()[..], &hash(number, &filler).to_le_bytes(), &filler].concat())
}

/// The number of a frame that is whole; `None` if it is no frame of these tests, or one without a body.
///
/// # Panics
/// If it is one, and is not whole.
pub(crate) fn number(frame: &[u8]) -> Option<u64> {
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

/// A packet socket at one end of a wire.
pub(crate) struct Raw(OwnedFd);

impl Raw {
    /// Opens it, in the namespace of the end.
    pub(crate) fn open(end: &End) -> Self {
        end.namespace.within(|| Self::bind(end.index())).unwrap()
    }

    fn bind(interface: u32) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: opens a descriptor.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        // SAFETY: a new descriptor, which nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        for (level, option, value) in [
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20),
        ] {
            let value: i32 = value;
            // SAFETY: the value is valid to read for its size.
            let result = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    level,
                    option,
                    (&raw const value).cast(),
                    size_of::<i32>() as u32,
                )
            };
            assert_eq!(result, 0, "{}", io::Error::last_os_error());
        }
        // SAFETY: all zeros are an address.
        let mut address: libc::sockaddr_ll = unsafe { core::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface as i32;
        // SAFETY: the address is valid to read for its size.
        let result = unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32)
        };
        if result == 0 { Ok(Self(socket)) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends a frame. Returns whether the kernel took it.
    pub(crate) fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: the frame is valid to read for its length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        sent == frame.len() as isize
    }

    /// A frame that has come.
    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 1 << 16];
        // SAFETY: the buffer is valid to write for its length.
        let received = unsafe { libc::recv(self.0.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        frame.truncate(usize::try_from(received).ok()?);
        Some(frame)
    }
}

/// Which of a number of frames have come, each once.
pub(crate) struct Seen {
    seen: Vec<bool>,
    pub(crate) count: u64,
}

impl Seen {
    pub(crate) fn new(frames: u64) -> Self {
        Self { seen: vec![false; frames as usize], count: 0 }
    }

    /// Notes a frame, unless it is none of these tests.
    ///
    /// # Panics
    /// If it came before, or is not whole.
    pub(crate) fn note(&mut self, frame: &[u8]) {
        let Some(number) = number(frame) else { return };
        assert!(!core::mem::replace(&mut self.seen[number as usize], true), "frame {number} came twice");
        self.count += 1;
    }
}

/// The bytes of the frame with this number: from the shortest to the longest, in an order that does not repeat soon.
pub(crate) fn bytes_of(number: u64, most: usize) -> usize {
    FRAME_MIN + (number * 7_919 % (most - FRAME_MIN + 1) as u64) as usize
}
