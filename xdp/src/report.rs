//! What a socket and the kernel have counted.

use core::fmt;

use tripoint_packets::PacketRingCounts;

use crate::XdpMode;

/// What the kernel has counted for a socket (`XDP_STATISTICS`), in frames unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdpStatistics {
    /// Frames that were dropped: no unit was there to receive into, or the unit had no room.
    pub receive_dropped: u64,
    /// Entries of the fill ring that named no unit.
    pub receive_invalid: u64,
    /// Frames that were dropped because the receive ring was full.
    pub receive_ring_full: u64,
    /// How often the fill ring was empty when the kernel wanted a unit.
    pub fill_ring_empty: u64,
    /// Entries of the transmit ring that named no packet. Their units may stay with the ring until it is closed.
    pub transmit_invalid: u64,
    /// How often the transmit ring was empty when the kernel looked.
    pub transmit_ring_empty: u64,
}

impl XdpStatistics {
    pub(crate) const fn of(counted: libc::xdp_statistics) -> Self {
        Self {
            receive_dropped: counted.rx_dropped,
            receive_invalid: counted.rx_invalid_descs,
            receive_ring_full: counted.rx_ring_full,
            fill_ring_empty: counted.rx_fill_ring_empty_descs,
            transmit_invalid: counted.tx_invalid_descs,
            transmit_ring_empty: counted.tx_ring_empty_descs,
        }
    }

    /// Frames that came for the socket, and that the program did not get.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.receive_dropped + self.receive_ring_full
    }
}

/// What became of the frames of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdpReport {
    /// The name of the interface.
    pub interface: String,
    /// The queue.
    pub queue: u32,
    /// What the kernel does, as it says itself: [`XdpMode::Copy`] or [`XdpMode::ZeroCopy`].
    pub mode: XdpMode,
    /// The most bytes of a frame, or of a part of one, that a unit has room for.
    pub frame_max: u32,
    /// The units on their way to receive. `completed` is the frames received, or their parts.
    pub receive: PacketRingCounts,
    /// The packets on their way to be sent. `submitted` is the packets sent, or their parts.
    pub transmit: PacketRingCounts,
    /// Frames that came whole and were dropped: they had more parts than there was room for, or a part that the kernel named
    /// wrongly, or were to be received into a chain or a batch of another pool.
    pub chains_dropped: u64,
    /// The units that wait in the fill ring.
    pub fill_waiting: u32,
    /// Calls that had the kernel look at the fill ring.
    pub receive_calls: u64,
    /// Calls that had the kernel look at the transmit ring.
    pub transmit_calls: u64,
    /// What the kernel has counted.
    pub kernel: XdpStatistics,
}

impl fmt::Display for XdpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, queue, receive, transmit, kernel, .. } = self;
        let mode = match self.mode {
            XdpMode::ZeroCopy => "zero copy",
            XdpMode::Copy | XdpMode::Either => "a copy",
        };
        writeln!(f, "{interface}, queue {queue}, by {mode}, frames of up to {} bytes", self.frame_max)?;
        writeln!(
            f,
            "  received {}, lost {} ({} without a unit or room, {} without a place in the ring), {} came and were dropped; {} calls",
            receive.completed,
            kernel.lost(),
            kernel.receive_dropped,
            kernel.receive_ring_full,
            self.chains_dropped,
            self.receive_calls
        )?;
        writeln!(
            f,
            "  sent {}, {} of them not completed, {} refused by the kernel; {} calls",
            transmit.submitted,
            transmit.outstanding(),
            kernel.transmit_invalid,
            self.transmit_calls
        )?;
        write!(
            f,
            "  units: {} with the kernel, {} of them in the fill ring, which was empty {} times; {} completions refused",
            receive.outstanding() + transmit.outstanding(),
            self.fill_waiting,
            kernel.fill_ring_empty,
            receive.refused + transmit.refused
        )
    }
}
