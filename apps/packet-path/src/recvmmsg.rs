//! Datagrams of a UDP socket, with a list of buffers, as programs without kernel bypass receive them.

use core::mem::MaybeUninit;
use core::ops::Deref;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::source::{BURST, FrameCounts, Source, SourceCounts};

/// The bytes of a buffer.
const BUFFER_BYTES: usize = 2048;

/// The bytes of the socket's own buffer: the kernel doubles them, and counts what it needs itself as well.
const SOCKET_BYTES: usize = 32 << 20;

/// A buffer with a datagram.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    length: usize,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A socket and its buffers.
pub(crate) struct Recvmmsg {
    socket: UdpSocket,
    /// Those that are free.
    free: Vec<Buffer>,
    buffers: usize,
    counts: SourceCounts,
}

impl Recvmmsg {
    /// Takes the datagrams of `socket` into that many buffers.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn new(socket: UdpSocket, buffers: usize) -> io::Result<Self> {
        grow(&socket)?;
        let counts = SourceCounts { call: "recvmmsg", ..SourceCounts::default() };
        let buffer = || {
            let mut bytes = vec![0; BUFFER_BYTES].into_boxed_slice();
            // Zeroed memory may not be there before it is written.
            core::hint::black_box(&mut bytes).fill(1);
            Buffer { bytes, length: 0 }
        };
        let free = core::iter::repeat_with(buffer).take(buffers).collect();
        Ok(Self { socket, free, buffers, counts })
    }
}

/// Gives the socket a large buffer: with the privilege, beyond the limit of the system.
pub(crate) fn grow(socket: &UdpSocket) -> io::Result<()> {
    use nix::sys::socket::setsockopt;
    use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
    Ok(setsockopt(socket, RcvBufForce, &SOCKET_BYTES)
        .or_else(|_| setsockopt(socket, RcvBuf, &SOCKET_BYTES))?)
}

impl Source for Recvmmsg {
    type Frame = Buffer;

    fn receive(&mut self, frames: &mut Vec<Buffer>) {
        let count = self.free.len().min(BURST);
        let first = self.free.len() - count;
        let mut parts = [const { MaybeUninit::<libc::iovec>::zeroed() }; BURST];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; BURST];
        for ((buffer, part), header) in self.free[first..].iter_mut().zip(&mut parts).zip(&mut headers) {
            part.write(libc::iovec {
                iov_base: buffer.bytes.as_mut_ptr().cast(),
                iov_len: buffer.bytes.len(),
            });
            // SAFETY: all zeros are a header: without an address, without parts, without control data.
            let header = unsafe { header.assume_init_mut() };
            header.msg_hdr.msg_iov = part.as_mut_ptr();
            header.msg_hdr.msg_iovlen = 1;
        }
        let descriptor = self.socket.as_raw_fd();
        let (headers_at, flags) = (headers.as_mut_ptr().cast(), libc::MSG_DONTWAIT);
        // SAFETY: `count` headers are written, each with one part, which is a buffer that is valid to write for its length;
        // headers, parts and buffers are there until the call returns. There is no time limit.
        let result = unsafe {
            libc::recvmmsg(descriptor, headers_at, count as libc::c_uint, flags, core::ptr::null_mut())
        };
        self.counts.calls += 1;
        // Without a datagram, an error says so. Any other is seen as silence.
        let received = usize::try_from(result).unwrap_or(0);
        for (buffer, header) in self.free[first..].iter_mut().zip(&headers).take(received) {
            // SAFETY: all zeros are a header, and the kernel has written its length.
            buffer.length = unsafe { header.assume_init_ref() }.msg_len as usize;
        }
        // The first one is the one that came first; those without a datagram stay.
        frames.extend(self.free.drain(first..first + received));
    }

    fn release(&mut self, frame: Buffer) {
        self.free.push(frame);
    }

    fn refill(&mut self) {}

    fn counts(&self) -> SourceCounts {
        self.counts
    }

    fn finish(self) -> FrameCounts {
        let home = self.free.len();
        FrameCounts { units: self.buffers, home, reclaimed: 0, outstanding: self.buffers - home }
    }
}
