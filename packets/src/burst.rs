//! Several units at once, on their way between caches, rings and threads (design/packets.md `.burst`).

use core::fmt;
use core::mem;
use core::ptr;

use crate::PacketBox;
use crate::shared::Shared;

/// Up to `N` units of a [`PacketPool`](crate::PacketPool) that the program owns. What is data in them is not kept.
///
/// A [`PacketCache`](crate::PacketCache) fills it, and takes all its units back, by one copy of numbers; another thread's cache
/// may. Dropping it gives the units back to the pool, under one lock.
pub struct PacketBurst<'p, const SIZE: usize, const N: usize = 32> {
    pool: &'p Shared<SIZE>,
    /// Those below `count` are numbers of units, which are the burst's.
    numbers: [u32; N],
    count: usize,
}

impl<'p, const SIZE: usize, const N: usize> PacketBurst<'p, SIZE, N> {
    #[inline(always)]
    pub(crate) const fn new(pool: &'p Shared<SIZE>) -> Self {
        Self { pool, numbers: [0; N], count: 0 }
    }

    /// The pool that the units belong to.
    #[inline(always)]
    pub(crate) const fn pool(&self) -> &'p Shared<SIZE> {
        self.pool
    }

    /// Takes all of `numbers`, if it is empty and of this pool; returns whether it did.
    ///
    /// # Safety
    /// - They are numbers of units of the pool, each once. If it takes them, the caller gives the units up.
    #[inline(always)]
    pub(crate) unsafe fn take_all(&mut self, pool: &Shared<SIZE>, numbers: &[u32; N]) -> bool {
        let takes = self.count == 0 && ptr::eq(pool, self.pool);
        if takes {
            self.numbers = *numbers;
            self.count = N;
        }
        takes
    }

    /// Takes some more units.
    ///
    /// # Safety
    /// - It has room for them. They are numbers of units of its pool, each once, which the caller gives up.
    pub(crate) unsafe fn take(&mut self, numbers: &[u32]) {
        self.numbers[self.count..][..numbers.len()].copy_from_slice(numbers);
        self.count += numbers.len();
    }

    /// Gives all its units up, if it is of this pool: the first of `room` are their numbers then. Returns how many.
    ///
    /// All `N` numbers are copied, also if some are of no units: that is a copy of a size known to the compiler.
    #[inline(always)]
    pub(crate) fn give_all(&mut self, pool: &Shared<SIZE>, room: &mut [u32; N]) -> Option<usize> {
        if !ptr::eq(pool, self.pool) {
            return None;
        }
        *room = self.numbers;
        Some(mem::take(&mut self.count))
    }

    /// Gives all its units back to the pool, under one lock.
    pub fn clear(&mut self) {
        let count = mem::take(&mut self.count);
        if count > 0 {
            // SAFETY: the units were the burst's, each once, and it gave them up.
            unsafe { self.pool.give_back(&self.numbers[..count]) };
        }
    }

    /// The numbers of its units.
    pub(crate) fn numbers(&self) -> &[u32] {
        &self.numbers[..self.count]
    }

    /// How many units it has.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether it has no unit.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes the unit that was used last: a packet without data, which begin after the pool's headroom.
    #[inline]
    pub fn pop(&mut self) -> Option<PacketBox<'p, SIZE>> {
        self.count = self.count.checked_sub(1)?;
        let headroom = self.pool.region.headroom();
        // SAFETY: the unit was the burst's, which gave it up by counting one less; the headroom is at most `SIZE`.
        Some(unsafe { PacketBox::new(self.pool, self.numbers[self.count], headroom, 0) })
    }

    /// The memory of its units.
    #[inline]
    pub fn units_mut(&mut self) -> impl Iterator<Item = &mut [u8; SIZE]> {
        let pool = self.pool;
        self.numbers().iter().map(move |&number| {
            // SAFETY: `number` is that of a unit, which is the burst's.
            let unit = unsafe { pool.unit(number) };
            // SAFETY: the unit has `SIZE` bytes, which the pool wrote when it was created. The burst has each unit once, and
            // is borrowed exclusively.
            unsafe { unit.cast::<[u8; SIZE]>().as_mut() }
        })
    }

    /// Adds the unit of a packet, whose data are forgotten.
    ///
    /// # Errors
    /// The packet, if the burst is full or of another pool.
    #[inline]
    pub fn push(&mut self, packet: PacketBox<'p, SIZE>) -> Result<(), PacketBox<'p, SIZE>> {
        if self.count == N || !ptr::eq(packet.pool(), self.pool) {
            return Err(packet);
        }
        self.numbers[self.count] = packet.into_number();
        self.count += 1;
        Ok(())
    }
}

impl<const SIZE: usize, const N: usize> Drop for PacketBurst<'_, SIZE, N> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<const SIZE: usize, const N: usize> fmt::Debug for PacketBurst<'_, SIZE, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketBurst({} of {N} units)", self.count)
    }
}
