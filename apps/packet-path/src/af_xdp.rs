//! Frames of AF_XDP: the kernel writes them into units of the pool, and two rings say which (design/packet-path.md `.xdp`).

use core::time::Duration;

use tripoint::ArenaVm;
use tripoint::packets::{PacketBatch, PacketBox, PacketPool};
use tripoint_xdp::{XdpAttach, XdpError, XdpFilter, XdpOptions, XdpRedirect, XdpRegion, XdpSocket};
use wire::INTERFACE;

use crate::frame::payload;
use crate::source::{BURST, FrameCounts, Source, SourceCounts};

/// The bytes of a frame: a frame of Ethernet, and 256 in front of it that the kernel keeps for itself.
pub(crate) const FRAME_BYTES: usize = 2048;

/// The frames that the kernel is given, and the entries of either ring.
pub(crate) const RING_ENTRIES: u32 = 8192;

/// The entries of the rings to send. Nothing is sent, but there must be some.
const TRANSMIT_ENTRIES: u32 = 64;

/// How long the kernel may take to let go of the frames.
const CLOSE_TIME: Duration = Duration::from_secs(10);

/// The pool of frames.
pub(crate) type FramePool<'arena> = PacketPool<&'arena ArenaVm, FRAME_BYTES>;

/// A socket of AF_XDP, whose frames are units of the pool.
pub(crate) struct AfXdp<'pool> {
    pool: &'pool FramePool<'pool>,
    port: u16,
    redirect: XdpRedirect,
    socket: XdpSocket<'pool, FRAME_BYTES>,
    batch: PacketBatch<'pool, FRAME_BYTES, BURST>,
    counts: SourceCounts,
}

impl<'pool> AfXdp<'pool> {
    /// Has datagrams to `port` of the wire, in the namespace of this thread, come into units of the pool.
    ///
    /// # Errors
    /// [`XdpError`]
    pub(crate) fn open(pool: &'pool FramePool<'pool>, port: u16) -> Result<Self, XdpError> {
        let options = XdpOptions {
            receive_entries: RING_ENTRIES,
            transmit_entries: TRANSMIT_ENTRIES,
            ..XdpOptions::default()
        };
        // SAFETY: the socket is not forgotten: it is closed by `finish`, or dropped. The pool is on the stack of the main
        // thread, which waits for this one, and its memory is used for nothing else before the process ends.
        let socket = unsafe { XdpRegion::new(pool) }.open(INTERFACE, 0, options)?;
        let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::UdpPort(port), XdpAttach::Driver)?;
        redirect.add(&socket)?;
        let counts = SourceCounts {
            call: "recvfrom, to wake the driver",
            receive_ring_most: Some(0),
            fill_ring_least: Some(RING_ENTRIES as usize),
            ..SourceCounts::default()
        };
        Ok(Self { pool, port, redirect, socket, batch: pool.batch(), counts })
    }
}

impl<'pool> Source for AfXdp<'pool> {
    type Frame = PacketBox<'pool, FRAME_BYTES>;

    fn receive(&mut self, frames: &mut Vec<Self::Frame>) {
        let waiting = self.socket.waiting();
        if waiting > 0 {
            self.counts.receive_ring_most = self.counts.receive_ring_most.max(Some(waiting));
            let left = self.socket.fill_waiting();
            self.counts.fill_ring_least = self.counts.fill_ring_least.map(|least| least.min(left));
        }
        self.socket.receive(&mut self.batch);
        while let Some(mut frame) = self.batch.pop() {
            match payload(&frame, self.port) {
                Some(range) => {
                    frame.truncate(range.end);
                    frame.trim_front(range.start);
                    frames.push(frame);
                }
                None => {
                    self.counts.foreign += 1;
                    self.socket.cache().give(frame);
                }
            }
        }
    }

    fn waiting(&self) -> usize {
        self.socket.waiting()
    }

    fn release(&mut self, frame: Self::Frame) {
        self.socket.cache().give(frame);
    }

    /// The socket does it when it receives.
    fn refill(&mut self) {}

    fn counts(&self) -> SourceCounts {
        let report = self.socket.report();
        let (dropped, calls, refused) = (report.kernel.lost(), report.receive_calls, report.receive.refused);
        SourceCounts { dropped, calls, refused, ..self.counts }
    }

    fn finish(self) -> FrameCounts {
        let Self { pool, redirect, socket, batch, .. } = self;
        // Nothing comes any more.
        drop(redirect);
        drop(batch);
        let mut closing = socket.close();
        // What the kernel does not let go of is seen in the counts.
        let reclaimed = closing.wait(CLOSE_TIME).unwrap_or(0);
        FrameCounts::of(pool.counts(), reclaimed)
    }
}
