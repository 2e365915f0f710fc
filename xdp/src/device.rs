//! A socket with its four rings (design/xdp.md `.socket`).

use core::fmt;
use core::time::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use crate::abi::{self, Limit};
use crate::interface::Interface;
use crate::ring::{Completions, Submissions};
use crate::{XdpError, XdpMode, XdpOptions, XdpStatistics};

/// What a socket needs to be opened.
pub(crate) const RIGHTS: &str = "CAP_NET_RAW";

/// How long the kernel may take to let go of a queue, unless the program says.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// Where the frames of a socket are.
pub(crate) enum Memory<'a> {
    /// In memory that the kernel does not know yet, where a frame may lie in several units or not.
    New { region: libc::xdp_umem_reg, chains: bool },
    /// In that of a socket that is bound.
    Of(&'a OwnedFd),
}

/// A socket that is bound to a queue, and its rings. Once it is dropped, the kernel begins to let go of the queue.
pub(crate) struct Device {
    pub(crate) fill: Submissions<u64>,
    pub(crate) received: Completions<libc::xdp_desc>,
    pub(crate) transmit: Submissions<libc::xdp_desc>,
    pub(crate) sent: Completions<u64>,
    /// Closed after the rings are unmapped: a mapping would keep it open.
    pub(crate) socket: Arc<OwnedFd>,
}

impl Device {
    /// Opens a socket, and binds it once the queue is free.
    ///
    /// # Safety
    /// - [`abi::register`], if the memory is new.
    pub(crate) unsafe fn open(
        memory: &Memory<'_>,
        interface: &Interface,
        queue: u32,
        options: &XdpOptions,
    ) -> Result<Self, XdpError> {
        let socket = open_socket()?;
        if let Memory::New { region, .. } = memory {
            // SAFETY: the caller answers for the memory.
            unsafe { abi::register(&socket, region) }.map_err(|error| refused(&error, region))?;
        }
        let entries = [options.receive_entries, options.transmit_entries];
        make_rings(&socket, entries).map_err(|error| XdpError::of("the rings of AF_XDP", &error, ""))?;
        let mapped = map(&socket, entries).map_err(|error| XdpError::of("mapping the rings", &error, ""))?;
        if let Some(poll) = options.busy_poll {
            poll_busily(&socket, poll)
                .map_err(|error| XdpError::of("SO_PREFER_BUSY_POLL", &error, "CAP_NET_ADMIN"))?;
        }
        let mut address = address(interface, queue, options.flags());
        match memory {
            Memory::New { chains: true, .. } => address.sxdp_flags |= abi::XDP_USE_SG,
            Memory::New { chains: false, .. } => {}
            // All else is as for the other socket.
            Memory::Of(other) => {
                (address.sxdp_flags, address.sxdp_shared_umem_fd) =
                    (libc::XDP_SHARED_UMEM, std::os::fd::AsRawFd::as_raw_fd(*other).cast_unsigned());
            }
        }
        bind_within(PATIENCE, &socket, &address).map_err(|error| {
            let flag = address.sxdp_flags & abi::XDP_USE_SG;
            if flag != 0 && !knows_flag(&socket, flag) {
                return XdpError::NotOffered { call: "XDP_USE_SG", errno: libc::EINVAL };
            }
            unbound(&error, interface, queue, options.mode)
        })?;
        let (fill, received, transmit, sent) = mapped;
        Ok(Self { fill, received, transmit, sent, socket: Arc::new(socket) })
    }

    /// Whether frames are copied.
    pub(crate) fn mode(&self) -> Result<XdpMode, XdpError> {
        let options: libc::xdp_options = abi::get(&self.socket, libc::SOL_XDP, libc::XDP_OPTIONS)
            .map_err(|error| XdpError::of("XDP_OPTIONS", &error, ""))?;
        let is_zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(if is_zero_copy { XdpMode::ZeroCopy } else { XdpMode::Copy })
    }

    /// What the kernel has counted; zeros if it does not say.
    pub(crate) fn statistics(&self) -> XdpStatistics {
        let counted = abi::get::<libc::xdp_statistics>(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS);
        counted.map(XdpStatistics::of).unwrap_or_default()
    }

    /// What became of the socket since this was asked last.
    pub(crate) fn failure(&self) -> Option<i32> {
        let error = abi::get(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR).unwrap_or(0);
        (error != 0).then_some(error)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting =
            [self.fill.waiting(), self.received.waiting(), self.transmit.waiting(), self.sent.waiting()];
        f.debug_struct("Device").field("socket", &self.socket).field("waiting", &waiting).finish()
    }
}

/// Binds a socket, and waits if another has the queue.
pub(crate) fn bind_within(
    patience: Duration,
    socket: &OwnedFd,
    address: &libc::sockaddr_xdp,
) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match abi::bind(socket, address) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < patience => {
                thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// A socket of AF_XDP.
pub(crate) fn open_socket() -> Result<OwnedFd, XdpError> {
    abi::socket(libc::AF_XDP, libc::SOCK_RAW).map_err(|error| XdpError::of("socket(AF_XDP)", &error, RIGHTS))
}

/// A queue as an address.
pub(crate) fn address(interface: &Interface, queue: u32, flags: u16) -> libc::sockaddr_xdp {
    libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface.identity.index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    }
}

/// Whether the kernel knows a flag to bind with, which it looks at before it looks for the interface.
fn knows_flag(socket: &OwnedFd, sxdp_flags: u16) -> bool {
    let nowhere = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags,
        sxdp_ifindex: 0,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    !matches!(abi::bind(socket, &nowhere), Err(error) if error.raw_os_error() == Some(libc::EINVAL))
}

/// Has the kernel make the rings: those to receive have the first number of entries, those to transmit the second.
pub(crate) fn make_rings(socket: &OwnedFd, [receive, transmit]: [u32; 2]) -> io::Result<()> {
    for (ring, entries) in [
        (libc::XDP_UMEM_FILL_RING, receive),
        (libc::XDP_RX_RING, receive),
        (libc::XDP_TX_RING, transmit),
        (libc::XDP_UMEM_COMPLETION_RING, transmit),
    ] {
        abi::set(socket, libc::SOL_XDP, ring, &entries)?;
    }
    Ok(())
}

type Rings = (Submissions<u64>, Completions<libc::xdp_desc>, Submissions<libc::xdp_desc>, Completions<u64>);

#[allow(clippy::useless_conversion, reason = "32-bit targets, where an offset is half as wide")]
fn map(socket: &OwnedFd, [receive, transmit]: [u32; 2]) -> io::Result<Rings> {
    let offsets: libc::xdp_mmap_offsets = abi::get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
    Ok((
        Submissions::map(socket, libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, receive)?,
        Completions::map(socket, libc::XDP_PGOFF_RX_RING.cast_unsigned().into(), offsets.rx, receive)?,
        Submissions::map(socket, libc::XDP_PGOFF_TX_RING.cast_unsigned().into(), offsets.tx, transmit)?,
        Completions::map(socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, transmit)?,
    ))
}

fn poll_busily(socket: &OwnedFd, poll: crate::BusyPoll) -> io::Result<()> {
    // The numbers of the options are those of asm-generic, which all Linux targets of the libraries have.
    const SO_PREFER_BUSY_POLL: i32 = 69;
    const SO_BUSY_POLL_BUDGET: i32 = 70;
    let microseconds = i32::try_from(poll.microseconds).unwrap_or(i32::MAX);
    abi::set(socket, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, &1_i32)?;
    abi::set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &microseconds)?;
    abi::set(socket, libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, &i32::from(poll.budget))
}

/// Why memory was not registered.
pub(crate) fn refused(error: &io::Error, memory: &libc::xdp_umem_reg) -> XdpError {
    match (error.raw_os_error(), abi::limit(Limit::LockedMemory)) {
        (Some(libc::ENOBUFS), Some(limit)) => XdpError::LockedMemory { needed: memory.len, limit },
        // All else of it is as the kernel wants it.
        (Some(libc::EINVAL), _) => XdpError::Headroom { headroom: memory.headroom, unit: memory.chunk_size },
        _ => XdpError::of("XDP_UMEM_REG", error, RIGHTS),
    }
}

/// Why a socket was not bound.
fn unbound(error: &io::Error, interface: &Interface, queue: u32, mode: XdpMode) -> XdpError {
    let name = interface.name().to_owned();
    match error.raw_os_error() {
        Some(libc::EBUSY) => XdpError::QueueInUse { interface: name, queue },
        Some(libc::EINVAL) => XdpError::NoQueue { interface: name, queue },
        Some(libc::ENODEV) => XdpError::InterfaceGone { name },
        Some(libc::ENETDOWN) => XdpError::InterfaceDown { name },
        Some(libc::EOPNOTSUPP) if mode == XdpMode::ZeroCopy => XdpError::NoZeroCopy { interface: name },
        _ => XdpError::of("bind(AF_XDP)", error, RIGHTS),
    }
}
