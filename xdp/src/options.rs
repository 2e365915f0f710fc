//! Options for a socket.

use crate::XdpError;

/// How frames get from the driver into units, and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// Without a copy if the driver can, else by a copy. [`XdpReport::mode`](crate::XdpReport::mode) says which.
    #[default]
    Either,
    /// The kernel copies each frame. Every driver has this.
    Copy,
    /// The device itself reads and writes units.
    ZeroCopy,
}

/// Busy polling: the calls of the program run the driver, so that the device needs no interrupts. It needs CAP_NET_ADMIN, and
/// Linux 5.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long a call may poll for, in microseconds.
    pub microseconds: u32,
    /// How many frames a call may handle; if it is 0, as many as the kernel chooses.
    pub budget: u16,
}

/// Options for a socket: [`XdpRegion::open`](crate::XdpRegion::open).
#[derive(Clone, Copy, Debug)]
pub struct XdpOptions {
    /// Whether frames are copied. Default: either. For all sockets of a region that exist at once it is as for the first.
    pub mode: XdpMode,
    /// Has the kernel say when it needs a call, so that there are no others. Default: true.
    pub need_wakeup: bool,
    /// Whether the calls of the program run the driver. Default: no.
    pub busy_poll: Option<BusyPoll>,
    /// The entries of the fill ring and of the receive ring, and the units that the kernel is given to receive into: a power
    /// of two, at most 2^20. Default: 2048.
    pub receive_entries: u32,
    /// The entries of the transmit ring and of the completion ring: a power of two, at most 2^20. Default: 2048.
    pub transmit_entries: u32,
    /// Opens an interface whose MTU allows frames that a unit has no room for. The kernel drops and counts these
    /// ([`XdpStatistics::receive_dropped`](crate::XdpStatistics::receive_dropped)). Default: false.
    pub drop_long_frames: bool,
}

impl Default for XdpOptions {
    fn default() -> Self {
        Self {
            mode: XdpMode::Either,
            need_wakeup: true,
            busy_poll: None,
            receive_entries: 2048,
            transmit_entries: 2048,
            drop_long_frames: false,
        }
    }
}

/// The most entries of a ring.
const ENTRIES_MAX: u32 = 1 << 20;

impl XdpOptions {
    pub(crate) fn check(&self) -> Result<(), XdpError> {
        let entries = [self.receive_entries, self.transmit_entries];
        match entries.into_iter().find(|entries| !entries.is_power_of_two() || *entries > ENTRIES_MAX) {
            Some(entries) => Err(XdpError::Entries { entries }),
            None => Ok(()),
        }
    }

    /// The flags to bind with.
    pub(crate) fn flags(&self) -> u16 {
        let wakeup = if self.need_wakeup { libc::XDP_USE_NEED_WAKEUP } else { 0 };
        let mode = match self.mode {
            XdpMode::Either => 0,
            XdpMode::Copy => libc::XDP_COPY,
            XdpMode::ZeroCopy => libc::XDP_ZEROCOPY,
        };
        wakeup | mode
    }
}
