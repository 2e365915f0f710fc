//! A socket that was closed, until the kernel has let go of its units (design/xdp.md `.home`).

use core::fmt;
use core::time::Duration;

use tripoint_packets::PacketRing;

use crate::XdpError;
use crate::device::PATIENCE;
use crate::interface::Interface;
use crate::probe::Probe;

/// The units of a socket that was closed. The kernel may still use them: closing only tells it to stop, and it does so some time
/// later. [`wait`](Self::wait) returns them to the pool once it has.
///
/// Dropping it waits, but gives up after two seconds: units that the kernel has not let go of by then are not returned to the
/// pool, and the kernel may still write to them. So wait for as long as it takes, before the memory of a pool is used for
/// something else ([`XdpRegion::new`](crate::XdpRegion::new)). A duplicate of the socket's descriptor keeps the queue.
#[must_use = "units come back to the pool only by `wait`"]
pub struct XdpClosing<'p, const SIZE: usize> {
    pub(crate) interface: Interface,
    pub(crate) queue: u32,
    pub(crate) receive: PacketRing<'p, SIZE>,
    pub(crate) transmit: PacketRing<'p, SIZE>,
    probe: Probe,
}

impl<'p, const SIZE: usize> XdpClosing<'p, SIZE> {
    pub(crate) const fn new(
        interface: Interface,
        queue: u32,
        receive: PacketRing<'p, SIZE>,
        transmit: PacketRing<'p, SIZE>,
        probe: Probe,
    ) -> Self {
        Self { interface, queue, receive, transmit, probe }
    }

    /// How many units are with the kernel.
    #[must_use]
    pub const fn with_kernel(&self) -> u64 {
        self.receive.counts().outstanding() + self.transmit.counts().outstanding()
    }

    /// Waits until the queue can be bound again, so that the device uses no unit any more, and returns all units to the
    /// pool; returns how many. If the interface or the queue is gone, there is nothing to wait for.
    ///
    /// The queue is bound for a moment, to see that it can be, if its driver has zero copy.
    ///
    /// # Errors
    /// [`XdpError::StillBound`] after `patience`. Wait again. Another [`XdpError`] if the kernel does not say whether the queue is
    /// free.
    pub fn wait(&mut self, patience: Duration) -> Result<usize, XdpError> {
        if !self.probe.wait(patience)? {
            let (interface, queue) = (self.interface.name().to_owned(), self.queue);
            return Err(XdpError::StillBound { interface, queue, units: self.with_kernel() });
        }
        // SAFETY: the socket is closed, and its queue was found without one: the kernel has told the driver to stop.
        Ok(unsafe { self.receive.reclaim() + self.transmit.reclaim() })
    }
}

impl<const SIZE: usize> Drop for XdpClosing<'_, SIZE> {
    fn drop(&mut self) {
        // Waited for before, if nothing is with the kernel.
        if self.with_kernel() > 0 {
            let _ = self.wait(PATIENCE);
        }
    }
}

impl<const SIZE: usize> fmt::Debug for XdpClosing<'_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XdpClosing({}, queue {}, {} units)", self.interface, self.queue, self.with_kernel())
    }
}
