//! Whether the kernel has let go of a queue (design/xdp.md `.home`).

use core::fmt;
use core::time::Duration;
use std::os::fd::OwnedFd;

use crate::XdpError;
use crate::abi::{self, Mapping};
use crate::device;
use crate::interface::Interface;

/// The bytes of a frame of the probe: the fewest that the kernel takes.
const FRAME_BYTES: u32 = 2048;

/// What is bound to look: a socket, and a page for it.
#[derive(Debug)]
struct Second {
    /// Closed before its memory is unmapped.
    socket: OwnedFd,
    _memory: Mapping,
}

/// A second socket for a queue, which is bound as soon as the kernel lets it. It is made when the first is opened, so
/// that it needs nothing later, and is in the same network namespace.
pub(crate) struct Probe {
    /// None once the queue was found free: it would keep the queue itself.
    second: Option<Second>,
    address: libc::sockaddr_xdp,
}

impl Probe {
    pub(crate) fn new(interface: &Interface, queue: u32) -> Result<Self, XdpError> {
        let socket = device::open_socket()?;
        let page = abi::page_bytes();
        let memory = Mapping::of_zeros(page).map_err(|error| XdpError::of("mmap", &error, ""))?;
        let region = abi::memory(memory.base(), page, FRAME_BYTES, 0);
        // SAFETY: the kernel writes to frames only that it was given, and this socket gives it none.
        unsafe { abi::register(&socket, &region) }.map_err(|error| device::refused(&error, &region))?;
        device::make_rings(&socket, [1, 1])
            .map_err(|error| XdpError::of("the rings of AF_XDP", &error, ""))?;
        // A driver without zero copy refuses it after it found the queue free, and keeps nothing of it.
        let address = device::address(interface, queue, libc::XDP_ZEROCOPY);
        Ok(Self { second: Some(Second { socket, _memory: memory }), address })
    }

    /// Waits until the kernel has let go of the queue, or has no such interface or queue any more. Returns whether it has.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub(crate) fn wait(&mut self, patience: Duration) -> Result<bool, XdpError> {
        let Some(second) = &self.second else { return Ok(true) };
        if let Err(error) = device::bind_within(patience, &second.socket, &self.address) {
            match error.raw_os_error() {
                // The queue was found free, or is not there: none that a socket has is taken from an interface.
                Some(libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) => {}
                Some(libc::EBUSY) => return Ok(false),
                _ => return Err(XdpError::of("bind(AF_XDP)", &error, device::RIGHTS)),
            }
        }
        self.second = None;
        Ok(true)
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("second", &self.second).finish_non_exhaustive()
    }
}
