//! A packet that the program owns (design/packets.md `.box`).

use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::slice;

use crate::PacketError;
use crate::held::Held;
use crate::shared::Shared;

/// A packet: a unit of a [`PacketPool`](crate::PacketPool) that the program owns, and the part of it that is data.
///
/// ```text
///   | headroom     | data         | tailroom  |   of SIZE bytes
///   0              start          start + len
/// ```
///
/// It dereferences to its data. Dropping it gives the unit back to the pool, on any thread, under the pool's
/// lock; [`PacketCache::give`](crate::PacketCache::give) does it without. A unit that is with a device has no box: submitting
/// to a ring consumes it, and completion returns it.
///
/// The part that is no data holds whatever was written there last, by the program or a device.
pub struct PacketBox<'p, const SIZE: usize> {
    pool: &'p Shared<SIZE>,
    number: u32,
    start: u32,
    length: u32,
}

impl<'p, const SIZE: usize> PacketBox<'p, SIZE> {
    /// # Safety
    /// - `number` is that of a unit, which nothing else uses.
    /// - `start + length <= SIZE`
    #[inline(always)]
    pub(crate) const unsafe fn new(pool: &'p Shared<SIZE>, number: u32, start: u32, length: u32) -> Self {
        Self { pool, number, start, length }
    }

    /// The pool that the unit belongs to.
    #[inline(always)]
    pub(crate) const fn pool(&self) -> &'p Shared<SIZE> {
        self.pool
    }

    /// Gives the unit up, and returns its number.
    #[inline(always)]
    pub(crate) const fn into_number(self) -> u32 {
        self.into_held().number
    }

    /// Gives the unit up, and returns it with where its data lie.
    #[inline(always)]
    pub(crate) const fn into_held(self) -> Held {
        let held = Held { number: self.number, start: self.start, length: self.length };
        mem::forget(self);
        held
    }

    /// The number of the unit, below the pool's count.
    #[must_use]
    #[inline]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Where the data begin, in bytes from the beginning of the region. Without data this may be the end of the unit, where
    /// the next one begins. [`Submission::offset`](crate::Submission::offset) always lies in the unit.
    #[must_use]
    #[inline]
    pub const fn offset(&self) -> u64 {
        self.number as u64 * SIZE as u64 + self.start as u64
    }

    /// The bytes in front of the data.
    #[must_use]
    #[inline]
    pub const fn headroom(&self) -> usize {
        self.start as usize
    }

    /// The bytes behind the data.
    #[must_use]
    #[inline]
    pub const fn tailroom(&self) -> usize {
        SIZE - self.start as usize - self.length as usize
    }

    /// Makes the last `count` bytes of the headroom data, and returns them, to be written to.
    ///
    /// # Errors
    /// [`PacketError::NoRoom`] if the headroom is smaller.
    #[inline]
    pub fn prepend(&mut self, count: usize) -> Result<&mut [u8], PacketError> {
        let room = self.headroom();
        if count > room {
            return Err(PacketError::NoRoom { needed: count, room });
        }
        // At most the headroom, so a `u32`.
        self.start -= count as u32;
        self.length += count as u32;
        Ok(&mut self[..count])
    }

    /// Makes the first `count` bytes of the tailroom data, and returns them, to be written to.
    ///
    /// # Errors
    /// [`PacketError::NoRoom`] if the tailroom is smaller.
    #[inline]
    pub fn append(&mut self, count: usize) -> Result<&mut [u8], PacketError> {
        let room = self.tailroom();
        if count > room {
            return Err(PacketError::NoRoom { needed: count, room });
        }
        let before = self.length as usize;
        // At most the tailroom, so a `u32`.
        self.length += count as u32;
        Ok(&mut self[before..])
    }

    /// Appends a copy of `bytes`.
    ///
    /// # Errors
    /// As [`PacketBox::append`].
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), PacketError> {
        self.append(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Makes the first `count` bytes headroom: a header that was read. All of the data, if there are fewer.
    #[inline]
    pub const fn trim_front(&mut self, count: usize) {
        let count = if count < self.length as usize { count as u32 } else { self.length };
        self.start += count;
        self.length -= count;
    }

    /// Makes what is behind the first `length` bytes tailroom. Does nothing if there are fewer.
    #[inline]
    pub const fn truncate(&mut self, length: usize) {
        if length < self.length as usize {
            self.length = length as u32;
        }
    }

    /// Without data, which begin after the pool's headroom again.
    #[inline]
    pub const fn clear(&mut self) {
        self.start = self.pool.region.headroom();
        self.length = 0;
    }
}

impl<const SIZE: usize> Deref for PacketBox<'_, SIZE> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: there is a unit of this number (`new`).
        let unit = unsafe { self.pool.unit(self.number) };
        // SAFETY: the data lie in the unit (`new`; the methods keep `start + length`). The pool wrote to every unit when it
        // was created, and nothing else uses this one while the box owns it.
        unsafe { slice::from_raw_parts(unit.as_ptr().add(self.start as usize), self.length as usize) }
    }
}

impl<const SIZE: usize> DerefMut for PacketBox<'_, SIZE> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: there is a unit of this number (`new`).
        let unit = unsafe { self.pool.unit(self.number) };
        // SAFETY: as `deref`; the box is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(unit.as_ptr().add(self.start as usize), self.length as usize) }
    }
}

impl<const SIZE: usize> AsRef<[u8]> for PacketBox<'_, SIZE> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<const SIZE: usize> AsMut<[u8]> for PacketBox<'_, SIZE> {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl<const SIZE: usize> Drop for PacketBox<'_, SIZE> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `number` is that of a unit, which the box owned, and the box is gone.
        unsafe { self.pool.give_back(&[self.number]) };
    }
}

impl<const SIZE: usize> fmt::Debug for PacketBox<'_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketBox(unit {}, {} bytes at {})", self.number, self.length, self.start)
    }
}
