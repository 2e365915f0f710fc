//! A device of smoltcp, whose frames are units of a pool (design/xdp.md `.smoltcp`).

use core::fmt;

use ::smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use ::smoltcp::time::Instant;
use tripoint_packets::{PacketBatch, PacketBox};

use crate::frame::PLAIN_HEADER_BYTES;
use crate::{XdpClosing, XdpError, XdpSocket};

/// Frames that are received at once, and sent at once.
const BURST: usize = 32;

/// A queue of an interface as a device of smoltcp 0.12: a frame is parsed where the kernel wrote it, and built where the kernel
/// reads it, in units of the pool. It needs no other memory. The pool has a unit for each entry of the socket's rings, and at least
/// 100 more.
///
/// Frames that smoltcp builds are handed over when there are 32, and by [`flush`](Self::flush). A call of `Interface::poll` builds
/// one for each socket, so flush when a poll has changed nothing: all that there was to send goes by one call of the kernel.
///
/// smoltcp checks the checksums of what comes. A card delivers frames as they were on the wire, but the driver veth passes them on
/// without, unless the sender makes them: `ethtool -K INTERFACE tx off` at the other end.
///
/// ```
/// use tripoint_xdp::smoltcp::XdpDevice;
/// use tripoint_xdp::{XdpError, XdpSocket};
///
/// # use smoltcp::iface::{Interface, PollResult, SocketSet};
/// # use smoltcp::time::Instant;
/// /// One turn of a program that polls.
/// fn turn(
///     device: &mut XdpDevice<'_, 2048>,
///     interface: &mut Interface,
///     sockets: &mut SocketSet<'_>,
///     now: Instant,
/// ) -> Result<(), XdpError> {
///     match interface.poll(now, device, sockets) {
///         PollResult::SocketStateChanged => Ok(()), // there may be more to send: read and write sockets, and come back
///         PollResult::None => device.flush(),
///     }
/// }
/// ```
pub struct XdpDevice<'p, const SIZE: usize> {
    received: PacketBatch<'p, SIZE, BURST>,
    /// Frames that were read. Their units are given to the cache together.
    read: PacketBatch<'p, SIZE, BURST>,
    built: PacketBatch<'p, SIZE, BURST>,
    /// For the next frame that is built: a token that was handed out has its memory.
    spare: Option<PacketBox<'p, SIZE>>,
    dropped: u64,
    socket: XdpSocket<'p, SIZE>,
}

impl<'p, const SIZE: usize> XdpDevice<'p, SIZE> {
    /// A device over a socket.
    #[must_use]
    pub fn new(mut socket: XdpSocket<'p, SIZE>) -> Self {
        let cache = socket.cache();
        let (received, read, built) = (cache.batch(), cache.batch(), cache.batch());
        Self { received, read, built, spare: None, dropped: 0, socket }
    }

    /// The socket: for its report, and to wait for frames.
    #[must_use]
    pub const fn socket(&self) -> &XdpSocket<'p, SIZE> {
        &self.socket
    }

    /// How many frames came and were dropped, because the pool had no unit for what might be answered. The pool is too small then.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Hands the frames that were built to the kernel, and has it send them. What it has no room for is sent by the next call.
    ///
    /// # Errors
    /// Those of [`XdpSocket::wake`].
    pub fn flush(&mut self) -> Result<(), XdpError> {
        self.socket.send(&mut self.built);
        self.socket.wake()
    }

    /// Closes the socket ([`XdpSocket::close`]). Frames that were not sent are not sent any more.
    pub fn close(self) -> XdpClosing<'p, SIZE> {
        let Self { socket, .. } = self;
        socket.close()
    }

    /// The most bytes of a frame: the MTU of the interface when the socket was opened, and the header of Ethernet, as far as a unit
    /// has room for it.
    fn frame_bytes(&self) -> u32 {
        self.socket.mtu().saturating_add(PLAIN_HEADER_BYTES).min(self.socket.frame_max())
    }

    /// Whether there is a place to hand one more frame over.
    fn has_room(&mut self) -> bool {
        if self.built.room() == 0 {
            // What fails is seen by the program's own `flush`.
            let _ = self.flush();
        }
        self.built.room() > 0
    }

    /// Whether there is a unit for one more frame.
    fn has_unit(&mut self) -> bool {
        if self.spare.is_none() {
            self.spare = self.socket.cache().take();
        }
        self.spare.is_some()
    }
}

impl<'p, const SIZE: usize> Device for XdpDevice<'p, SIZE> {
    type RxToken<'a>
        = XdpRxToken<'a, 'p, SIZE>
    where
        Self: 'a;
    type TxToken<'a>
        = XdpTxToken<'a, 'p, SIZE>
    where
        Self: 'a;

    fn receive(&mut self, _: Instant) -> Option<(XdpRxToken<'_, 'p, SIZE>, XdpTxToken<'_, 'p, SIZE>)> {
        if self.received.is_empty() {
            self.socket.cache().give_batch(&mut self.read);
            self.socket.receive(&mut self.received);
        }
        if self.received.is_empty() || !self.has_room() {
            return None;
        }
        if !self.has_unit() {
            let mut dropped = self.received.pop()?;
            dropped.clear();
            self.spare = Some(dropped);
            self.dropped += 1;
        }
        let frame = self.received.pop()?;
        let send = XdpTxToken { spare: &mut self.spare, built: &mut self.built };
        Some((XdpRxToken { frame, read: &mut self.read }, send))
    }

    fn transmit(&mut self, _: Instant) -> Option<XdpTxToken<'_, 'p, SIZE>> {
        let is_ready = self.has_room() && self.has_unit();
        is_ready.then_some(XdpTxToken { spare: &mut self.spare, built: &mut self.built })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.frame_bytes() as usize;
        capabilities
    }
}

/// A frame that came.
pub struct XdpRxToken<'a, 'p, const SIZE: usize> {
    frame: PacketBox<'p, SIZE>,
    /// Has room for as many as are received at once.
    read: &'a mut PacketBatch<'p, SIZE, BURST>,
}

impl<const SIZE: usize> RxToken for XdpRxToken<'_, '_, SIZE> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let Self { frame, read } = self;
        let result = f(&frame);
        // If there is no room, the unit is dropped, and so goes to the pool.
        let _ = read.push(frame);
        result
    }
}

/// A place for a frame that is to be sent.
pub struct XdpTxToken<'a, 'p, const SIZE: usize> {
    spare: &'a mut Option<PacketBox<'p, SIZE>>,
    built: &'a mut PacketBatch<'p, SIZE, BURST>,
}

impl<const SIZE: usize> TxToken for XdpTxToken<'_, '_, SIZE> {
    /// A frame of more than `max_transmission_unit` bytes is built in memory of its own, and is not sent.
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, f: F) -> R {
        let Some(mut frame) = self.spare.take() else { return f(&mut vec![0; bytes]) };
        let Ok(room) = frame.append(bytes) else {
            *self.spare = Some(frame);
            return f(&mut vec![0; bytes]);
        };
        let result = f(room);
        // There was room when the token was made.
        let _ = self.built.push(frame);
        result
    }
}

impl<const SIZE: usize> fmt::Debug for XdpDevice<'_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XdpDevice({:?}, {} frames to send)", self.socket, self.built.len())
    }
}

impl<const SIZE: usize> fmt::Debug for XdpRxToken<'_, '_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XdpRxToken({} bytes)", self.frame.len())
    }
}

impl<const SIZE: usize> fmt::Debug for XdpTxToken<'_, '_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XdpTxToken({} frames before it)", self.built.len())
    }
}
