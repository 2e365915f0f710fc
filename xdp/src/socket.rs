//! A queue of an interface, whose frames are units of a pool (design/xdp.md `.socket`).

use core::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tripoint_packets::{PacketBatch, PacketCache, PacketChain, Submission};

use crate::closing::XdpClosing;
use crate::device::{Device, RIGHTS};
use crate::interface::Identity;
use crate::{XdpError, XdpMode, XdpOptions, XdpReport, abi};

/// Units that are given to the kernel at once, but no more than a quarter of the ring.
const REFILL: u32 = 32;

/// Calls for one [`wake`](XdpSocket::wake), each of which sends up to a number of packets that the kernel chooses.
const CALLS_MAX: u32 = 1 << 16;

/// A queue of an interface, whose frames are units of a pool. For one thread at a time.
///
/// ```text
///   cache  --fill--> fill ring     --> driver --> receive ring     --receive--> batch
///   cache  <-------- completion ring <-- driver <-- transmit ring  <----send---
/// ```
///
/// Neither [`receive`](Self::receive) nor [`send`](Self::send) waits. `receive` makes a call only if the kernel asks for one, or
/// if it polls busily; `send` makes none. It can be waited for with `poll` and the like, with a timeout ([`AsFd`]).
///
/// Dropping it closes it and waits, as dropping an [`XdpClosing`] does.
pub struct XdpSocket<'p, const SIZE: usize> {
    /// Closed first.
    device: Device,
    cache: PacketCache<'p, SIZE>,
    units: XdpClosing<'p, SIZE>,
    options: XdpOptions,
    mode: XdpMode,
    frame_max: u32,
    /// Whether a frame may lie in several units.
    chains: bool,
    chains_dropped: u64,
    receive_calls: u64,
    transmit_calls: u64,
}

impl<'p, const SIZE: usize> XdpSocket<'p, SIZE> {
    pub(crate) fn new(
        device: Device,
        cache: PacketCache<'p, SIZE>,
        units: XdpClosing<'p, SIZE>,
        options: XdpOptions,
        mode: XdpMode,
        frame_max: u32,
        chains: bool,
    ) -> Self {
        let (chains_dropped, receive_calls, transmit_calls) = (0, 0, 0);
        let mut socket = Self {
            device,
            cache,
            units,
            options,
            mode,
            frame_max,
            chains,
            chains_dropped,
            receive_calls,
            transmit_calls,
        };
        socket.refill();
        socket
    }

    /// The free units of the thread that has the socket: for packets to send, and for those that were received.
    pub const fn cache(&mut self) -> &mut PacketCache<'p, SIZE> {
        &mut self.cache
    }

    /// The interface and the queue.
    pub(crate) const fn place(&self) -> (Identity, u32) {
        (self.units.interface.identity, self.units.queue)
    }

    /// The name that the interface had when the socket was opened.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.units.interface.name()
    }

    /// The most bytes of a frame, or of a part of one, that a unit has room for.
    #[must_use]
    pub const fn frame_max(&self) -> u32 {
        self.frame_max
    }

    /// The MTU that the interface had when the socket was opened, in bytes: a packet without its header of Ethernet.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.units.interface.mtu
    }

    /// How many frames wait to be received; if they may lie in several units, how many units.
    #[must_use]
    #[inline]
    pub fn waiting(&self) -> usize {
        self.device.received.waiting() as usize
    }

    /// How many units wait to be received into.
    #[must_use]
    #[inline]
    pub fn fill_waiting(&self) -> usize {
        self.device.fill.waiting() as usize
    }

    /// Adds frames that have come to the batch, in their order, as far as it has room; returns how many. Then gives the kernel
    /// free units in their place, 32 or more at once, or a quarter of a smaller ring.
    ///
    /// A frame that the kernel names wrongly is no packet, and is counted ([`XdpReport::receive`]). A frame of several units is
    /// dropped and counted ([`XdpReport::chains_dropped`]). A batch of another pool gets none; if frames may lie in several units, a
    /// call drops and counts one.
    pub fn receive<const N: usize>(&mut self, batch: &mut PacketBatch<'p, SIZE, N>) -> usize {
        if self.chains {
            return self.receive_single(batch);
        }
        let Device { received, .. } = &mut self.device;
        let frames = received.read().map(|frame| (frame.addr, frame.len));
        let count = self.units.receive.complete_batch(batch, frames);
        received.release();
        self.refill();
        count
    }

    /// Receives frames of one unit each.
    fn receive_single<const N: usize>(&mut self, batch: &mut PacketBatch<'p, SIZE, N>) -> usize {
        let (before, mut single) = (batch.len(), self.cache.chain::<1>());
        while batch.room() > 0 && self.receive_chain(&mut single) {
            if single.pop().is_none_or(|packet| batch.push(packet).is_err()) {
                // A batch of another pool would take none, however many came.
                self.chains_dropped += 1;
                break;
            }
        }
        batch.len() - before
    }

    /// Receives the next frame, in however many units it lies ([`XdpRegion::with_chains`](crate::XdpRegion::with_chains)). Returns
    /// whether one has come, with all its parts. What the chain had before is given back.
    ///
    /// A frame is dropped and counted if the chain has no room for its parts, or is of another pool, or if the kernel names
    /// one of them wrongly ([`XdpReport::chains_dropped`]).
    pub fn receive_chain<const N: usize>(&mut self, chain: &mut PacketChain<'p, SIZE, N>) -> bool {
        self.cache.give_chain(chain);
        let mut is_whole = false;
        while !is_whole && let Some(parts) = self.frame_ahead() {
            let frame = self.device.received.read().take(parts).map(|part| (part.addr, part.len));
            is_whole = self.units.receive.complete_chain(chain, frame);
            self.chains_dropped += u64::from(!is_whole);
        }
        self.device.received.release();
        self.refill();
        is_whole
    }

    /// In how many units the next frame lies, if all of it has come. One that fills the ring has no end that could come.
    fn frame_ahead(&self) -> Option<usize> {
        let mut parts = 0;
        for part in self.device.received.ahead() {
            parts += 1;
            if part.options & abi::XDP_PKT_CONTD == 0 || parts == self.options.receive_entries as usize {
                return Some(parts);
            }
        }
        None
    }

    /// Gives the kernel free units to receive into, if it has places for some of them, and calls it if it asks for that.
    fn refill(&mut self) {
        let entries = self.options.receive_entries;
        let wanted = u64::from(entries).saturating_sub(self.units.receive.counts().outstanding());
        if wanted >= u64::from(REFILL.min(entries.div_ceil(4))) {
            let fill = &mut self.device.fill;
            let count = wanted.min(u64::from(fill.room())) as usize;
            self.units.receive.fill(&mut self.cache, count, fill.push(|unit: Submission| unit.offset));
            fill.publish();
        }
        if self.options.busy_poll.is_some() || self.device.fill.needs_wakeup() {
            self.receive_calls += 1;
            // What fails here is seen by `check`: the kernel has no frame then.
            let _ = abi::wake_receiver(&self.device.socket);
        }
    }

    /// Hands packets of the batch to the kernel, the first ones first, as far as the transmit ring has room; returns how
    /// many. The others stay in the batch. They are sent when the kernel is [woken](Self::wake).
    ///
    /// A packet has a header of Ethernet. One without data cannot be sent: its unit may stay with the kernel until the socket is
    /// closed ([`XdpStatistics::transmit_invalid`](crate::XdpStatistics::transmit_invalid)).
    pub fn send<const N: usize>(&mut self, batch: &mut PacketBatch<'p, SIZE, N>) -> usize {
        self.complete();
        let room = self.room();
        let transmit = &mut self.device.transmit;
        let count = self.units.transmit.submit_batch(batch, room, transmit.push(descriptor));
        transmit.publish();
        count
    }

    /// Hands a packet of several units to the kernel, if the transmit ring has room for all of them. Returns whether it had;
    /// else the chain keeps its data. It is sent when the kernel is [woken](Self::wake).
    ///
    /// Kernels send up to 18 parts, unless they were built for more, and count a packet of more as invalid.
    ///
    /// # Errors
    /// [`XdpError::Chain`] if the packet has more parts than the socket can ever send. The chain keeps its data.
    pub fn send_chain<const N: usize>(
        &mut self,
        chain: &mut PacketChain<'p, SIZE, N>,
    ) -> Result<bool, XdpError> {
        let most = if self.chains { self.options.transmit_entries } else { 1 };
        if chain.parts() > most as usize {
            return Err(XdpError::Chain { parts: chain.parts(), most });
        }
        self.complete();
        let is_sent = chain.parts() <= self.room();
        if is_sent {
            let transmit = &mut self.device.transmit;
            {
                let mut push = transmit.push(part);
                self.units.transmit.submit_chain(chain, |packet, goes_on| push((packet, goes_on)));
            }
            transmit.publish();
        }
        Ok(is_sent && chain.is_empty())
    }

    /// Takes units back whose packets the kernel has sent; returns how many. [`send`](Self::send) does it, too.
    pub fn complete(&mut self) -> usize {
        let sent = &mut self.device.sent;
        let count = self.units.transmit.complete_all_into(&mut self.cache, sent.read());
        sent.release();
        count
    }

    /// Has the kernel send what it was handed, if it needs a call for that.
    ///
    /// # Errors
    /// [`XdpError::InterfaceDown`], [`XdpError::InterfaceGone`], or [`XdpError::System`] if the kernel refuses for another reason.
    /// What was not sent stays in the ring, and is sent when the interface is switched on again.
    pub fn wake(&mut self) -> Result<(), XdpError> {
        for _ in 0..CALLS_MAX {
            let transmit = &self.device.transmit;
            let before = transmit.waiting();
            if before == 0 || (self.options.need_wakeup && !transmit.needs_wakeup()) {
                break;
            }
            self.transmit_calls += 1;
            let outcome = abi::wake_sender(&self.device.socket);
            self.complete();
            match outcome.as_ref().map_err(io::Error::raw_os_error) {
                Ok(()) => {}
                // It sent some, or has no room for more at this time.
                Err(Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR)) => {}
                Err(_) => return Err(self.failed(outcome)),
            }
            if self.device.transmit.waiting() == before {
                break;
            }
        }
        Ok(())
    }

    /// Why the kernel could not be woken.
    #[cold]
    fn failed(&self, outcome: io::Result<()>) -> XdpError {
        match (self.check(), outcome) {
            (Err(error), _) => error,
            (Ok(()), Err(error)) => XdpError::of("sendto(AF_XDP)", &error, RIGHTS),
            (Ok(()), Ok(())) => XdpError::System { call: "sendto(AF_XDP)", errno: 0 },
        }
    }

    /// Whether frames can come: whether the interface is there and switched on, and the socket is still bound to it. It makes
    /// three calls: ask when nothing has come for some time.
    ///
    /// An interface that is being deleted is switched off first. One without a carrier is not off: the kernel drops what is
    /// sent by it, and counts that for the interface (`ip -s link`), but not for the socket.
    ///
    /// # Errors
    /// [`XdpError::InterfaceDown`], [`XdpError::InterfaceGone`], or [`XdpError::System`] if the kernel reports another error of
    /// the socket.
    pub fn check(&self) -> Result<(), XdpError> {
        self.units.interface.check()?;
        match self.device.failure() {
            None => Ok(()),
            // The kernel says this once to a socket whose interface is gone.
            Some(libc::ENETDOWN) => Err(XdpError::InterfaceGone { name: self.interface().to_owned() }),
            Some(errno) => Err(XdpError::System { call: "AF_XDP", errno }),
        }
    }

    /// What was counted, by the rings and by the kernel. It makes a call.
    #[must_use]
    pub fn report(&self) -> XdpReport {
        XdpReport {
            interface: self.interface().to_owned(),
            queue: self.units.queue,
            mode: self.mode,
            frame_max: self.frame_max,
            receive: self.units.receive.counts(),
            transmit: self.units.transmit.counts(),
            chains_dropped: self.chains_dropped,
            fill_waiting: self.device.fill.waiting(),
            receive_calls: self.receive_calls,
            transmit_calls: self.transmit_calls,
            kernel: self.device.statistics(),
        }
    }

    /// Closes the socket, and flushes its cache. Its units come back when the kernel has let go of them.
    pub fn close(self) -> XdpClosing<'p, SIZE> {
        let Self { device, cache, units, .. } = self;
        drop((device, cache));
        units
    }

    /// How many packets can be handed to the kernel. Completions have room for all of them.
    fn room(&self) -> usize {
        let outstanding = self.units.transmit.counts().outstanding();
        let free = u64::from(self.options.transmit_entries).saturating_sub(outstanding);
        free.min(u64::from(self.device.transmit.room())) as usize
    }
}

/// What to write into a transmit ring.
const fn descriptor(packet: Submission) -> libc::xdp_desc {
    libc::xdp_desc { addr: packet.offset, len: packet.length, options: 0 }
}

/// What to write into a transmit ring for a part of a packet, which goes on after it or not.
const fn part((packet, goes_on): (Submission, bool)) -> libc::xdp_desc {
    libc::xdp_desc { options: if goes_on { abi::XDP_PKT_CONTD } else { 0 }, ..descriptor(packet) }
}

/// To wait by `poll` and the like. These do not return when the interface is deleted: wait with a timeout, and call
/// [`check`](XdpSocket::check) if nothing has come.
///
/// A duplicate of the descriptor keeps the queue and the units when the socket is closed. None may outlive the memory of the
/// pool ([`XdpRegion::new`](crate::XdpRegion::new)).
impl<const SIZE: usize> AsFd for XdpSocket<'_, SIZE> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.socket.as_fd()
    }
}

impl<const SIZE: usize> fmt::Debug for XdpSocket<'_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XdpSocket({}, queue {})", self.units.interface, self.units.queue)
    }
}
