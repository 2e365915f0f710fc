//! Frames of AF_XDP: the kernel writes them into units of the pool, and two rings say which (design/packet-path.md `.xdp`).

use core::ptr::NonNull;
use std::io;
use std::os::fd::BorrowedFd;

use tripoint::ArenaVm;
use tripoint::packets::{PacketBox, PacketCache, PacketPool, PacketRing};
use xdpilone::{DeviceQueue, Errno, IfInfo, RingRx, Socket, SocketConfig, Umem, UmemConfig};

use crate::frame::payload;
use crate::link::INTERFACE;
use crate::redirect::Redirect;
use crate::source::{BURST, FrameCounts, Source, SourceCounts};

/// The bytes of a frame: a frame of Ethernet, and 256 in front of it that the kernel keeps for itself.
pub(crate) const FRAME_BYTES: usize = 2048;

/// The frames that the kernel is given, and the entries of either ring.
pub(crate) const RING_ENTRIES: u32 = 8192;

/// Entries of the ring of frames that were sent. Nothing is sent, but there must be one.
const COMPLETION_ENTRIES: u32 = 64;

/// The pool of frames.
pub(crate) type FramePool<'arena> = PacketPool<&'arena ArenaVm, FRAME_BYTES>;

/// A socket of AF_XDP, whose frames are units of the pool.
pub(crate) struct AfXdp<'pool> {
    pool: &'pool FramePool<'pool>,
    port: u16,
    cache: PacketCache<'pool, FRAME_BYTES>,
    ring: PacketRing<'pool, FRAME_BYTES>,
    device: DeviceQueue,
    received: RingRx,
    /// Ends before the socket.
    _redirect: Redirect,
    counts: SourceCounts,
}

impl<'pool> AfXdp<'pool> {
    /// Has datagrams to `port` of the wire, in the namespace of this thread, come into units of the pool.
    ///
    /// # Errors
    /// The operating system's: without the privilege, [`io::ErrorKind::PermissionDenied`].
    pub(crate) fn open(pool: &'pool FramePool<'pool>, port: u16) -> io::Result<Self> {
        let mut interface = IfInfo::invalid();
        interface.from_name(INTERFACE).map_err(os_error)?;
        let umem = register(pool)?;
        let socket = Socket::with_shared(&interface, &umem).map_err(os_error)?;
        let device = umem.fq_cq(&socket).map_err(os_error)?;
        let config = SocketConfig {
            rx_size: core::num::NonZeroU32::new(RING_ENTRIES),
            tx_size: None,
            bind_flags: SocketConfig::XDP_BIND_NEED_WAKEUP,
        };
        let user = umem.rx_tx(&socket, &config).map_err(os_error)?;
        let received = user.map_rx().map_err(os_error)?;
        umem.bind(&user).map_err(os_error)?;
        // SAFETY: the socket is open as long as its ring.
        let descriptor = unsafe { BorrowedFd::borrow_raw(received.as_raw_fd()) };
        let redirect = Redirect::begin(interface.ifindex(), port, descriptor)?;
        let counts = SourceCounts {
            call: "recvfrom, to wake the driver",
            receive_ring_most: Some(0),
            fill_ring_least: Some(RING_ENTRIES as usize),
            ..SourceCounts::default()
        };
        let (cache, ring) = (pool.cache().map_err(io::Error::other)?, pool.ring().map_err(io::Error::other)?);
        let mut source = Self { pool, port, cache, ring, device, received, _redirect: redirect, counts };
        source.fill(RING_ENTRIES);
        Ok(source)
    }

    /// Gives the kernel up to `count` free frames.
    fn fill(&mut self, count: u32) {
        let mut slots = self.device.fill(count);
        let free = slots.capacity() as usize;
        self.ring.fill(&mut self.cache, free, |frame| {
            slots.insert_once(frame.offset);
        });
        slots.commit();
    }

    /// The frames that the kernel is to have more.
    fn wanted(&self) -> u32 {
        let outstanding = self.ring.counts().outstanding();
        u64::from(RING_ENTRIES).saturating_sub(outstanding) as u32
    }
}

/// Tells the kernel of the memory of the pool.
fn register(pool: &FramePool<'_>) -> io::Result<Umem> {
    let region = pool.region();
    let config = UmemConfig {
        fill_size: RING_ENTRIES,
        complete_size: COMPLETION_ENTRIES,
        frame_size: FRAME_BYTES as u32,
        headroom: region.headroom(),
        flags: 0,
    };
    let memory = NonNull::slice_from_raw_parts(region.base(), region.size());
    // SAFETY: the memory is the pool's for as long as the pool exists, which is longer than the socket, because its user
    // borrows it. The kernel writes to units only that it was given by the fill ring, which are with the ring of the pool then.
    unsafe { Umem::new(config, memory) }.map_err(os_error)
}

fn os_error(error: Errno) -> io::Error {
    io::Error::from_raw_os_error(error.get_raw())
}

impl<'pool> Source for AfXdp<'pool> {
    type Frame = PacketBox<'pool, FRAME_BYTES>;

    fn receive(&mut self, frames: &mut Vec<Self::Frame>) {
        let waiting = self.received.available();
        if waiting == 0 {
            return;
        }
        self.counts.receive_ring_most = self.counts.receive_ring_most.max(Some(waiting as usize));
        let left = self.device.pending() as usize;
        self.counts.fill_ring_least = self.counts.fill_ring_least.map(|least| least.min(left));
        let mut descriptors = self.received.receive(BURST as u32);
        while let Some(descriptor) = descriptors.read() {
            // What the kernel says wrongly is counted by the ring, and is no frame.
            let Ok(mut frame) = self.ring.complete(descriptor.addr, descriptor.len) else { continue };
            match payload(&frame, self.port) {
                Some(range) => {
                    frame.truncate(range.end);
                    frame.trim_front(range.start);
                    frames.push(frame);
                }
                None => {
                    self.counts.foreign += 1;
                    self.cache.give(frame);
                }
            }
        }
        descriptors.release();
    }

    fn waiting(&self) -> usize {
        self.received.available() as usize
    }

    fn release(&mut self, frame: Self::Frame) {
        self.cache.give(frame);
    }

    fn refill(&mut self) {
        if self.wanted() >= BURST as u32 {
            self.fill(self.wanted());
        }
        if self.device.needs_wakeup() {
            self.counts.calls += 1;
            self.device.wake();
        }
    }

    fn counts(&self) -> SourceCounts {
        // A frame for which there was nothing to fill counts as dropped, too.
        let statistics = self.device.statistics_v2();
        let dropped = statistics.map(|counts| counts.rx_dropped + counts.rx_ring_full);
        SourceCounts { dropped: dropped.unwrap_or(0), ..self.counts }
    }

    fn finish(self) -> FrameCounts {
        let Self { pool, cache, mut ring, device, received, _redirect: redirect, .. } = self;
        // Nothing comes any more, and then the socket is closed: the kernel has no frame.
        drop(redirect);
        drop((received, device));
        let reclaimed = ring.reclaim();
        drop(cache);
        FrameCounts::of(pool.counts(), reclaimed)
    }
}
