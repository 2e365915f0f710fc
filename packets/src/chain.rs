//! A packet that lies in several units (design/packets.md `.chain`).

use core::fmt;

use crate::{PacketBatch, PacketBox, PacketCache, PacketRing, Submission};

/// A packet of a [`PacketPool`](crate::PacketPool) whose data lie in up to `N` units, its parts, in their order: for frames that
/// a unit has no room for. The program owns all of them.
///
/// A [`PacketRing`] completes all parts into it, or none, and submits all of them. No part is without data. Dropping it gives the
/// units back to the pool, under one lock; [`PacketCache::give_chain`] does it without.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_packets::{PacketPool, PacketPoolOptions};
///
/// let pool = PacketPool::<_, 2048>::create(&arena, PacketPoolOptions { count: 64, ..Default::default() })?;
/// let (mut cache, mut ring, mut chain) = (pool.cache()?, pool.ring()?, pool.chain::<4>());
/// let mut fill_ring = Vec::new(); // the device's
/// ring.fill(&mut cache, 3, |unit| fill_ring.push(unit.offset));
///
/// // The device wrote a packet of 4,100 bytes to the three.
/// let parts = [(fill_ring[0], 2048), (fill_ring[1], 2048), (fill_ring[2], 4)];
/// assert!(ring.complete_chain(&mut chain, parts));
/// assert_eq!((chain.len(), chain.parts()), (4_100, 3));
/// assert_eq!(chain.iter().map(<[u8]>::len).collect::<Vec<_>>(), [2048, 2048, 4]);
///
/// // It sends them as one packet again.
/// let mut transmit_ring = Vec::new();
/// ring.submit_chain(&mut chain, |part, goes_on| transmit_ring.push((part.offset, goes_on)));
/// assert_eq!(transmit_ring.iter().map(|part| part.1).collect::<Vec<_>>(), [true, true, false]);
/// # assert_eq!(ring.complete_all_into(&mut cache, fill_ring), 3);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct PacketChain<'p, const SIZE: usize, const N: usize> {
    parts: PacketBatch<'p, SIZE, N>,
}

impl<'p, const SIZE: usize, const N: usize> PacketChain<'p, SIZE, N> {
    pub(crate) const fn new(parts: PacketBatch<'p, SIZE, N>) -> Self {
        Self { parts }
    }

    /// The bytes of its data, in all parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }

    /// Whether it has no data, and so no part.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// In how many units its data lie.
    #[must_use]
    pub const fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Adds a part behind the others.
    ///
    /// # Errors
    /// The part, if it has no data, or if the chain is full or of another pool.
    pub fn push(&mut self, part: PacketBox<'p, SIZE>) -> Result<(), PacketBox<'p, SIZE>> {
        if part.is_empty() { Err(part) } else { self.parts.push(part) }
    }

    /// Takes the first part.
    pub fn pop(&mut self) -> Option<PacketBox<'p, SIZE>> {
        self.parts.pop()
    }

    /// The data of its parts, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.parts.iter()
    }

    /// The data of its parts, in their order, to be written to.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        self.parts.iter_mut()
    }

    /// Gives all its units back to the pool, under one lock.
    pub fn clear(&mut self) {
        self.parts.clear();
    }
}

impl<'p, const SIZE: usize> PacketRing<'p, SIZE> {
    /// Completes the parts of one packet as [`complete`](Self::complete) does, each by its offset and the bytes of its data, and adds
    /// them to the chain. Returns whether the chain has all of them.
    ///
    /// If a part is refused, has no data, or finds no room, the chain is empty afterwards. A unit that is refused is counted, and
    /// the units of all others go to the pool. If `completions` unwinds, the chain keeps the parts before.
    pub fn complete_chain<const N: usize>(
        &mut self,
        chain: &mut PacketChain<'p, SIZE, N>,
        completions: impl IntoIterator<Item = (u64, u32)>,
    ) -> bool {
        let mut is_whole = true;
        for (offset, length) in completions {
            let part = self.complete(offset, length);
            // A part that the chain does not take is dropped.
            is_whole &= part.is_ok_and(|part| chain.push(part).is_ok());
        }
        if !is_whole {
            chain.clear();
        }
        is_whole
    }

    /// Submits all parts of a packet, the first ones first, and calls `write` for each, with whether the packet goes on after it.
    /// Returns how many: none if the chain is of another pool, and has them still.
    ///
    /// Reserve as many places in the device's ring first. The device may use their data. If `write` unwinds, its part and those
    /// before it are with the ring.
    pub fn submit_chain<const N: usize>(
        &mut self,
        chain: &mut PacketChain<'p, SIZE, N>,
        mut write: impl FnMut(Submission, bool),
    ) -> usize {
        let parts = chain.parts();
        let mut behind = parts;
        self.submit_batch(&mut chain.parts, parts, |part| {
            behind -= 1;
            write(part, behind > 0);
        })
    }
}

impl<'p, const SIZE: usize> PacketCache<'p, SIZE> {
    /// A chain of the pool without data, as [`PacketPool::chain`](crate::PacketPool::chain) returns it.
    #[must_use]
    pub const fn chain<const N: usize>(&self) -> PacketChain<'p, SIZE, N> {
        PacketChain::new(self.batch())
    }

    /// Keeps the units of a chain, which is empty then. Those of another pool go there.
    pub fn give_chain<const N: usize>(&mut self, chain: &mut PacketChain<'p, SIZE, N>) {
        self.give_batch(&mut chain.parts);
    }
}

impl<const SIZE: usize, const N: usize> fmt::Debug for PacketChain<'_, SIZE, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketChain({} bytes in {} of {N} units)", self.len(), self.parts())
    }
}
