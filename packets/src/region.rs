//! The memory of all units, and the arithmetic between numbers and offsets (design/packets.md `.unit`).

use core::ptr::NonNull;

use crate::PacketError;
use crate::units::{locate, offset_of};

/// The alignment of units, in bytes, is the largest power of two that divides their size, but no more than this: a page.
const ALIGN_MAX: usize = 4096;

/// The memory of all units of a [`PacketPool`](crate::PacketPool): one range of addresses, which a device can be told once
/// and for all.
///
/// ```text
///   base                                                            base + size
///   | unit 0                | unit 1                | ... | unit count - 1 |
///   | headroom | room       | headroom | room       |
/// ```
///
/// Units are named by their number, or by the offset of one of their bytes from `base`. Every conversion is checked and takes
/// constant time.
///
/// # Safety of devices
///
/// To tell a device an address is unsafe, in whatever way it is done. The caller promises:
///
/// - The device writes only to units that are with a ring ([`PacketRing`](crate::PacketRing)), and the code that has the ring
///   completes only what the device has completed.
/// - The pool is kept until the device has been told to forget the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRegion<const SIZE: usize> {
    base: NonNull<u8>,
    count: u32,
    headroom: u32,
}

// SAFETY: a region is an address and two numbers, none of which is bound to a thread; following the address is unsafe.
unsafe impl<const SIZE: usize> Send for PacketRegion<SIZE> {}
// SAFETY: a shared region only returns its address and its numbers.
unsafe impl<const SIZE: usize> Sync for PacketRegion<SIZE> {}

impl<const SIZE: usize> PacketRegion<SIZE> {
    /// The bytes of a unit are a multiple of 64, and a `u32` counts them.
    pub(crate) const SIZE_IS_VALID: () = assert!(
        SIZE > 0 && SIZE.is_multiple_of(64) && SIZE <= 1 << 30,
        "SIZE is a multiple of 64, at most 2^30"
    );

    /// The alignment of the region and of each unit, in bytes.
    pub(crate) const ALIGN: usize = if SIZE.trailing_zeros() < ALIGN_MAX.trailing_zeros() {
        1 << SIZE.trailing_zeros()
    } else {
        ALIGN_MAX
    };

    pub(crate) const fn new(base: NonNull<u8>, count: u32, headroom: u32) -> Self {
        Self { base, count, headroom }
    }

    /// The first byte. It is a multiple of the largest power of two that divides `SIZE`, at most 4096.
    #[must_use]
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The bytes of all units.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.count as usize * SIZE
    }

    /// The bytes of a unit.
    #[must_use]
    pub const fn unit_size(&self) -> usize {
        SIZE
    }

    /// The bytes at the front of each unit that a device is to leave free.
    #[must_use]
    pub const fn headroom(&self) -> u32 {
        self.headroom
    }

    /// The number of units.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The offset of the first byte of a unit; `None` if there is no such unit.
    #[must_use]
    pub const fn offset_of(&self, number: u32) -> Option<u64> {
        offset_of::<SIZE>(self.count, number)
    }

    /// The number of the unit that begins at `offset`.
    ///
    /// # Errors
    /// [`PacketError::Outside`], [`PacketError::Unaligned`]
    pub const fn number_of(&self, offset: u64) -> Result<u32, PacketError> {
        match self.locate(offset, 0) {
            Ok((number, 0)) => Ok(number),
            Ok(_) => Err(PacketError::Unaligned { offset, unit: SIZE }),
            Err(error) => Err(error),
        }
    }

    /// The unit in which `length` bytes from `offset` lie: its number, and where in it they begin.
    ///
    /// # Errors
    /// [`PacketError::Outside`], [`PacketError::Overrun`]
    #[inline]
    pub const fn locate(&self, offset: u64, length: u32) -> Result<(u32, u32), PacketError> {
        locate::<SIZE>(self.count, offset, length)
    }
}
