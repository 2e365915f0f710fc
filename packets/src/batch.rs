//! Packets with their data, on their way between rings and the program (design/packets.md `.batch`).

use core::fmt;
use core::ptr;
use core::slice;

use crate::held::Held;
use crate::reports::Called;
use crate::shared::Shared;
use crate::{PacketBox, PacketCache};

/// Up to `N` packets of a [`PacketPool`](crate::PacketPool) that the program owns, in their order, each with its data.
///
/// A [`PacketRing`](crate::PacketRing) completes into it, and submits from it. A [`PacketBurst`](crate::PacketBurst) is for units
/// without data. Dropping it gives the units back to the pool, under one lock; [`PacketCache::give_batch`] does it without.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_packets::{PacketPool, PacketPoolOptions};
///
/// let pool = PacketPool::<_, 2048>::create(&arena, PacketPoolOptions { count: 64, ..Default::default() })?;
/// let (mut cache, mut ring, mut batch) = (pool.cache()?, pool.ring()?, pool.batch::<32>());
/// let mut fill_ring = Vec::new(); // the device's
/// ring.fill(&mut cache, 3, |unit| fill_ring.push(unit.offset));
///
/// // The device wrote 60 bytes to each. The last of them it never had.
/// let completed = fill_ring.iter().map(|&offset| (offset, 60)).chain([(63 * 2048, 60)]);
/// assert_eq!(ring.complete_batch(&mut batch, completed), 3);
/// batch.iter_mut().for_each(|data| data[0] = 1);
///
/// // The device has places for two, and sends them.
/// let mut transmit_ring = Vec::new();
/// assert_eq!(ring.submit_batch(&mut batch, 2, |packet| transmit_ring.push(packet.offset)), 2);
/// assert_eq!((batch.len(), transmit_ring), (1, fill_ring[..2].to_vec()));
/// assert_eq!(ring.complete_all_into(&mut cache, fill_ring[..2].iter().copied()), 2);
/// cache.give_batch(&mut batch);
/// assert_eq!((ring.counts().outstanding(), ring.counts().refused), (0, 1));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct PacketBatch<'p, const SIZE: usize, const N: usize = 32> {
    pool: &'p Shared<SIZE>,
    /// Those from `begin` to `end` are packets, which are the batch's.
    held: [Held; N],
    begin: usize,
    end: usize,
}

impl<'p, const SIZE: usize, const N: usize> PacketBatch<'p, SIZE, N> {
    pub(crate) const fn new(pool: &'p Shared<SIZE>) -> Self {
        const NONE: Held = Held { number: 0, start: 0, length: 0 };
        Self { pool, held: [NONE; N], begin: 0, end: 0 }
    }

    /// The pool that the units belong to.
    #[inline(always)]
    pub(crate) const fn pool(&self) -> &'p Shared<SIZE> {
        self.pool
    }

    /// How many packets it has.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.end - self.begin
    }

    /// Whether it has no packet.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// How many packets it has room for.
    #[must_use]
    #[inline]
    pub const fn room(&self) -> usize {
        N - self.len()
    }

    /// Adds a packet behind the others.
    ///
    /// # Errors
    /// The packet, if the batch is full or of another pool.
    #[inline]
    pub fn push(&mut self, packet: PacketBox<'p, SIZE>) -> Result<(), PacketBox<'p, SIZE>> {
        if self.room() == 0 || !ptr::eq(packet.pool(), self.pool) {
            return Err(packet);
        }
        // SAFETY: there is room, and the box of this pool owned the unit, in which its data lie; it gives it up.
        unsafe { self.push_held(1)(packet.into_held()) };
        Ok(())
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<PacketBox<'p, SIZE>> {
        let Held { number, start, length } = self.drain(1).next()?;
        // SAFETY: the unit was the batch's, which gave it up; the data lie in it (`push_held`).
        Some(unsafe { PacketBox::new(self.pool, number, start, length) })
    }

    /// The data of its packets, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.packets().iter().map(|held| {
            // SAFETY: the data lie in a unit of the pool, which wrote to it when it was created (`push_held`). The unit is the
            // batch's, which is borrowed.
            unsafe { slice::from_raw_parts(self.pool.data(*held).as_ptr(), held.length as usize) }
        })
    }

    /// The data of its packets, in their order, to be written to.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let pool = self.pool;
        self.held[self.begin..self.end].iter().map(move |held| {
            // SAFETY: the data lie in a unit of the pool, which wrote to it when it was created (`push_held`). The batch has each
            // unit once, and is borrowed exclusively.
            unsafe { slice::from_raw_parts_mut(pool.data(*held).as_ptr(), held.length as usize) }
        })
    }

    /// Gives all its units back to the pool, under one lock.
    pub fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        let mut numbers = [0; N];
        let count = self.len();
        for (number, held) in numbers.iter_mut().zip(self.packets()) {
            *number = held.number;
        }
        (self.begin, self.end) = (0, 0);
        // SAFETY: the units were the batch's, each once, and it gave them up.
        unsafe { self.pool.give_back(&numbers[..count]) };
    }

    fn packets(&self) -> &[Held] {
        &self.held[self.begin..self.end]
    }

    /// Adds up to `most` packets, one for each call, and counts each. The count is only stored: no call waits for what the one
    /// before stored.
    ///
    /// # Safety
    /// - There is [`room`](Self::room) for them.
    /// - The units are of its pool; the caller of the function gives each up, and the data lie in it.
    #[inline(always)]
    pub(crate) unsafe fn push_held(&mut self, most: usize) -> impl FnMut(Held) {
        if N - self.end < most {
            self.held.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.len());
        }
        let mut end = self.end;
        move |packet| {
            self.held[end] = packet;
            end += 1;
            self.end = end;
        }
    }

    /// Gives up to `most` packets up, the first ones first: each when the iterator returns it.
    #[inline(always)]
    pub(crate) fn drain(&mut self, most: usize) -> impl Iterator<Item = Held> {
        let Self { held, begin, end, .. } = self;
        let first = *begin;
        held[first..*end].iter().take(most).enumerate().map(move |(place, held)| {
            *begin = first + place + 1;
            *held
        })
    }
}

impl<'p, const SIZE: usize> PacketCache<'p, SIZE> {
    /// A batch of the pool without packets, as [`PacketPool::batch`](crate::PacketPool::batch) returns it.
    #[must_use]
    pub const fn batch<const N: usize>(&self) -> PacketBatch<'p, SIZE, N> {
        PacketBatch::new(self.pool())
    }

    /// Keeps the units of all packets of a batch, which is empty then. Those of another pool go there.
    #[inline]
    pub fn give_batch<const N: usize>(&mut self, batch: &mut PacketBatch<'p, SIZE, N>) {
        if !ptr::eq(batch.pool(), self.pool()) {
            return batch.clear();
        }
        let (reported, had) = (self.pool().reports.begin(), batch.len());
        {
            // SAFETY: the batch of this pool owned the units, and gives each up.
            let mut push = unsafe { self.push_some() };
            for held in batch.drain(N) {
                if let Some(reported) = &reported {
                    reported.unit(held);
                }
                push(held.number);
            }
        }
        if let Some(reported) = reported {
            reported.end(Called { asked: N as u64, moved: had, ..self.called("give batch") });
        }
    }
}

impl<const SIZE: usize, const N: usize> Drop for PacketBatch<'_, SIZE, N> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<const SIZE: usize, const N: usize> fmt::Debug for PacketBatch<'_, SIZE, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketBatch({} of {N} packets)", self.len())
    }
}
