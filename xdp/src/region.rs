//! The region of a pool, as the kernel knows it (design/xdp.md `.region`).

use core::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use tripoint_core::Arena;
use tripoint_packets::{PacketPool, PacketRegion};

use crate::closing::XdpClosing;
use crate::device::{Device, Memory};
use crate::frame::{HEADER_BYTES, frame_max};
use crate::interface::{Identity, Interface};
use crate::probe::Probe;
use crate::{XdpError, XdpOptions, XdpSocket, abi};

/// The region of a pool, for sockets of AF_XDP: one for all of them, on any interfaces and queues (UMEM).
///
/// The kernel learns of the memory with the first socket, locks it, and forgets it with the last.
///
/// Frames are units of 2048 or 4096 bytes, which has to be seen where the code is compiled. The kernel keeps 256 bytes at the
/// front of each, then come those that the pool keeps ([`headroom`](tripoint_packets::PacketPoolOptions::headroom)), then the frame.
/// A frame lies in one unit, unless the region is [`with_chains`](Self::with_chains).
pub struct XdpRegion<'p, A: Arena, const SIZE: usize> {
    pool: &'p PacketPool<A, SIZE>,
    bound: Vec<Bound>,
    chains: bool,
}

/// A socket of the region, and its queue.
struct Bound {
    socket: Weak<OwnedFd>,
    interface: Identity,
    queue: u32,
}

impl<A: Arena + 'static, const SIZE: usize> XdpRegion<'static, A, SIZE> {
    /// The region of a pool that is there for as long as the program: in a static, or leaked.
    pub const fn of_static(pool: &'static PacketPool<A, SIZE>) -> Self {
        Self::over(pool)
    }
}

impl<'p, A: Arena, const SIZE: usize> XdpRegion<'p, A, SIZE> {
    /// The region of a pool.
    ///
    /// # Safety
    /// - No [`XdpSocket`] and no [`XdpClosing`] of it is forgotten (`mem::forget`, a cycle of reference counts, a thread
    ///   that outlives the pool by other means): the kernel may write to the memory until they are dropped.
    /// - No duplicate of a socket's descriptor outlives the memory of the pool, neither one that was made by
    ///   [`AsFd`](std::os::fd::AsFd) nor that of a process that was forked: the kernel may write to the memory until the last of them
    ///   is closed, also if the socket is dropped.
    /// - If an `XdpClosing` was dropped before the kernel had let go, for which it waits two seconds, the memory of the pool is used
    ///   for nothing else.
    ///
    /// ```
    /// # use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
    /// # use tripoint_packets::{PacketPool, PacketPoolOptions};
    /// # use tripoint_xdp::{XdpError, XdpOptions, XdpRegion};
    /// # let arena = ArenaVm::create(ArenaVmOptions::default())?;
    /// let pool = PacketPool::<_, 2048>::create(&arena, PacketPoolOptions::default())?;
    /// // SAFETY: no socket is forgotten, no descriptor is duplicated, and sockets are waited for until their queues are free.
    /// let mut region = unsafe { XdpRegion::new(&pool) };
    /// assert!(matches!(
    ///     region.open("no interface", 0, XdpOptions::default()),
    ///     Err(XdpError::NoInterface { .. })
    /// ));
    /// # Ok::<(), tripoint_core::Error>(())
    /// ```
    pub const unsafe fn new(pool: &'p PacketPool<A, SIZE>) -> Self {
        Self::over(pool)
    }

    const fn over(pool: &'p PacketPool<A, SIZE>) -> Self {
        const { assert!(SIZE == 2048 || SIZE == 4096, "frames of AF_XDP have 2048 or 4096 bytes") };
        Self { pool, bound: Vec::new(), chains: false }
    }

    /// Lets a frame lie in several units, so that an interface may have a larger MTU than a unit has room for (multi-buffer,
    /// jumbo frames): see [`XdpSocket::receive_chain`]. It needs Linux 6.6, and
    /// [`XdpRedirect::attach_with_chains`](crate::XdpRedirect::attach_with_chains). Sockets that were opened before stay as they are.
    #[must_use]
    pub fn with_chains(self) -> Self {
        // The kernel learns of the memory again, with the next socket: it is for one kind of frames or the other.
        Self { bound: Vec::new(), chains: true, ..self }
    }

    /// The most bytes of a frame, or of a part of one, that a unit has room for.
    #[must_use]
    pub const fn frame_max(&self) -> u32 {
        // `SIZE` is a `u32`.
        frame_max(SIZE as u32, self.pool.region().headroom())
    }

    /// Opens a socket for a queue of an interface, in the network namespace of the calling thread, and gives the kernel units to
    /// receive into. It needs one of the caches of the pool
    /// ([`PacketPoolOptions::caches`](tripoint_packets::PacketPoolOptions::caches)), and a page that is locked.
    ///
    /// If the queue has a socket, this waits for two seconds: the kernel lets go of one that was closed, or whose program has
    /// ended, some time later.
    ///
    /// Frames come once an [`XdpRedirect`](crate::XdpRedirect) hands them over. Packets are sent without one.
    ///
    /// # Errors
    /// - of the options: [`XdpError::Entries`]
    /// - of the interface: [`XdpError::NoInterface`], [`XdpError::InterfaceDown`], [`XdpError::InterfaceGone`],
    ///   [`XdpError::NoQueue`], [`XdpError::QueueInUse`], [`XdpError::NoZeroCopy`], and [`XdpError::Mtu`] if a frame may be
    ///   longer than a unit has room for
    /// - of the pool: [`XdpError::Headroom`], [`XdpError::Misaligned`], and [`XdpError::Pool`] if all its caches are in use
    /// - of the process and its user: [`XdpError::LockedMemory`], [`XdpError::Descriptors`], and [`XdpError::Rights`] without
    ///   CAP_NET_RAW, or without CAP_NET_ADMIN for busy polling
    /// - of the kernel: [`XdpError::NotOffered`], [`XdpError::System`]
    pub fn open(
        &mut self,
        interface: &str,
        queue: u32,
        options: XdpOptions,
    ) -> Result<XdpSocket<'p, SIZE>, XdpError> {
        options.check()?;
        let interface = Interface::find(interface)?;
        let frame_max = self.frame_max();
        let takes_any_frame = self.chains || options.drop_long_frames;
        if !takes_any_frame && interface.mtu.saturating_add(HEADER_BYTES) > frame_max {
            let (interface, mtu) = (interface.name().to_owned(), interface.mtu);
            return Err(XdpError::Mtu { interface, mtu, frame_max: Some(frame_max) });
        }
        self.bound.retain(|bound| bound.socket.strong_count() > 0);
        let (cache, receive, transmit) = (self.pool.cache()?, self.pool.ring()?, self.pool.ring()?);
        // Before the socket is bound: one that is closed again would keep its queue for a while.
        let region = if self.bound.is_empty() { self.pool.region().size() } else { 0 };
        let probe = Probe::new(&interface, queue).map_err(|error| with_all(error, region))?;
        let device = self.bind(&interface, queue, &options)?;
        let mode = device.mode()?;
        let (socket, identity) = (Arc::downgrade(&device.socket), interface.identity);
        self.bound.push(Bound { socket, interface: identity, queue });
        let units = XdpClosing::new(interface, queue, receive, transmit, probe);
        Ok(XdpSocket::new(device, cache, units, options, mode, frame_max, self.chains))
    }

    /// Opens a socket with the memory of one that is bound. If there is none, the kernel learns of the memory.
    fn bind(&self, interface: &Interface, queue: u32, options: &XdpOptions) -> Result<Device, XdpError> {
        for other in self.bound.iter().filter_map(|bound| bound.socket.upgrade()) {
            match self.bind_with(&Memory::Of(&other), interface, queue, options) {
                // That of an interface that is gone is bound no more.
                Err(XdpError::System { errno: libc::EBADF, .. }) => {}
                // What the kernel says of a queue that a socket of this region has.
                Err(XdpError::NoQueue { interface: name, .. }) if self.has(interface.identity, queue) => {
                    return Err(XdpError::QueueInUse { interface: name, queue });
                }
                outcome => return outcome,
            }
        }
        let region = self.pool.region();
        let memory = Memory::New { region: describe(region)?, chains: self.chains };
        self.bind_with(&memory, interface, queue, options).map_err(|error| with_all(error, region.size()))
    }

    fn bind_with(
        &self,
        memory: &Memory<'_>,
        interface: &Interface,
        queue: u32,
        options: &XdpOptions,
    ) -> Result<Device, XdpError> {
        // SAFETY: the pool outlives the socket, which borrows it, and duplicates of its descriptor, as the maker of the region
        // promised; a static pool outlives all. The kernel uses only units that are with the socket's rings.
        unsafe { Device::open(memory, interface, queue, options) }
    }

    fn has(&self, interface: Identity, queue: u32) -> bool {
        self.bound.iter().any(|bound| (bound.interface, bound.queue) == (interface, queue))
    }
}

/// Names all that a socket needs to have locked: the bytes of the region, unless they are, and the page of its probe.
fn with_all(error: XdpError, region: usize) -> XdpError {
    let XdpError::LockedMemory { limit, .. } = error else { return error };
    XdpError::LockedMemory { needed: (region + abi::page_bytes()) as u64, limit }
}

/// The region as the kernel wants it.
fn describe<const SIZE: usize>(region: PacketRegion<SIZE>) -> Result<libc::xdp_umem_reg, XdpError> {
    let page = abi::page_bytes();
    let offset = region.base().addr().get() % page;
    if offset != 0 {
        return Err(XdpError::Misaligned { offset, page });
    }
    Ok(abi::memory(region.base(), region.size(), SIZE as u32, region.headroom()))
}

impl<A: Arena, const SIZE: usize> fmt::Debug for XdpRegion<'_, A, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = self.bound.iter().filter(|bound| bound.socket.strong_count() > 0).count();
        write!(f, "XdpRegion({} units of {SIZE} bytes, {bound} sockets)", self.pool.region().count())
    }
}
