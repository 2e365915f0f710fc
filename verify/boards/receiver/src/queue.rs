//! A queue of the device: which unit of the pool each of its descriptors points at.
//!
//! ```text
//!   descriptors   [ 0 ][ 1 ][ 2 ] ...      the driver's, which says the number of each: its token
//!                   |         |
//!   units         [ 17 ][ - ][ 4 ] ...     here: what was submitted with that token
//!                   |         |
//!   PacketRing     17 and 4 are with the ring
//! ```

use tripoint::packets::{PacketRegion, PacketRing, PacketRingCounts, Submission};

use crate::failure::Failure;
use crate::memory::{Cache, Packet, Ring, UNIT};

/// The descriptors of a queue.
pub(crate) const DESCRIPTORS: usize = 64;

/// A queue of the device, and the units that are with it.
pub(crate) struct Queue {
    ring: Ring,
    region: PacketRegion<UNIT>,
    units: [Option<Submission>; DESCRIPTORS],
}

impl Queue {
    pub(crate) const fn new(ring: Ring, region: PacketRegion<UNIT>) -> Self {
        Self { ring, region, units: [None; DESCRIPTORS] }
    }

    /// The descriptors that point at no unit.
    pub(crate) fn free(&self) -> usize {
        DESCRIPTORS - self.ring.counts().outstanding() as usize
    }

    pub(crate) fn counts(&self) -> PacketRingCounts {
        self.ring.counts()
    }

    /// Submits free units for all descriptors that have none. `begin` hands the memory to the device and returns the token.
    pub(crate) fn fill(
        &mut self,
        cache: &mut Cache,
        mut begin: impl FnMut(&mut [u8]) -> Result<u16, virtio_drivers::Error>,
    ) -> Result<(), Failure> {
        let (free, mut outcome) = (self.free(), Ok(()));
        let Self { ring, region, units } = self;
        ring.fill(cache, free, |unit| match begin(memory(region, unit)) {
            Ok(token) => units[usize::from(token) % DESCRIPTORS] = Some(unit),
            Err(error) => outcome = Err(error.into()),
        });
        outcome
    }

    /// Submits a packet.
    pub(crate) fn submit(
        &mut self,
        packet: Packet,
        begin: impl FnOnce(&mut [u8]) -> Result<u16, virtio_drivers::Error>,
    ) -> Result<(), Failure> {
        let unit = self.ring.submit(packet).map_err(|_| Failure::Unmet("packets are of one pool"))?;
        let token = begin(memory(&self.region, unit))?;
        self.units[usize::from(token) % DESCRIPTORS] = Some(unit);
        Ok(())
    }

    /// Takes back the unit of a token. `end` has the driver let go of its memory, and returns how many bytes of it are data.
    pub(crate) fn complete(
        &mut self,
        token: u16,
        end: impl FnOnce(&mut [u8]) -> Result<usize, virtio_drivers::Error>,
    ) -> Result<Packet, Failure> {
        let unit = self.units[usize::from(token) % DESCRIPTORS].take();
        let unit = unit.ok_or(Failure::Unmet("the device completes what it has"))?;
        let size = end(memory(&self.region, unit))?;
        Ok(self.ring.complete(unit.offset, size as u32)?)
    }

    /// Whether the pool refuses a unit that is not with the ring, although a device says that it completed it.
    pub(crate) fn refuses(&mut self, packet: &Packet) -> bool {
        self.ring.complete(packet.offset(), 0).is_err()
    }

    /// Takes back all units.
    ///
    /// # Safety
    /// - The device has stopped: it neither reads nor writes any unit of the queue.
    pub(crate) unsafe fn reclaim(&mut self) -> usize {
        self.units = [None; DESCRIPTORS];
        // SAFETY: the caller says that the device has stopped.
        unsafe { PacketRing::reclaim(&mut self.ring) }
    }
}

/// The memory of a unit that is with a ring.
fn memory(region: &PacketRegion<UNIT>, unit: Submission) -> &mut [u8] {
    // SAFETY: the unit is with the ring of this queue, so nothing else in the program uses it, and it was written
    // when the pool was made. The bytes lie in it. The queue lends the slice for one call, in which the device is informed of the
    // memory or lets go of it.
    unsafe {
        let base = region.base().add(unit.offset as usize);
        core::slice::from_raw_parts_mut(base.as_ptr(), unit.length as usize)
    }
}
