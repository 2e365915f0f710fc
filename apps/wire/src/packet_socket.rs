//! A packet socket at an end of a wire: it sends and receives whole frames, and knows nothing of AF_XDP.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::End;

/// A packet socket at one end of a wire.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens it, in the namespace of the end.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(end: &End) -> io::Result<Self> {
        end.namespace.within(|| Self::bind(end.index()))
    }

    /// Opens it for the interface with this number in the namespace of the calling thread.
    ///
    /// # Errors
    /// The operating system's.
    pub fn bind(interface: u32) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: opens a descriptor.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, which nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        for (level, option, value) in [
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20),
            (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 8 << 20),
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
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
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
    pub fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: the frame is valid to read for its length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        sent == frame.len() as isize
    }

    /// A frame that has come.
    pub fn receive(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 1 << 16];
        // SAFETY: the buffer is valid to write for its length.
        let received = unsafe { libc::recv(self.0.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        frame.truncate(usize::try_from(received).ok()?);
        Some(frame)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
