//! Between numbers of units and offsets of their bytes (design/packets.md `.unit`). Kept apart from pointers, so that laws can be
//! proved of it (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

use crate::PacketError;

/// The offset of the first byte of a unit of `SIZE` bytes; `None` if there is no such unit among `count`.
#[inline]
pub(crate) const fn offset_of<const SIZE: usize>(count: u32, number: u32) -> Option<u64> {
    if number < count { Some(number as u64 * SIZE as u64) } else { None }
}

/// The unit in which `length` bytes from `offset` lie, among `count` of `SIZE` bytes: its number, and where in it they begin. All
/// units together have no more bytes than there are addresses.
#[inline]
pub(crate) const fn locate<const SIZE: usize>(
    count: u32,
    offset: u64,
    length: u32,
) -> Result<(u32, u32), PacketError> {
    let size = (count as usize * SIZE) as u64;
    if offset >= size {
        return Err(PacketError::Outside { offset, size });
    }
    // Both are below `count` or `SIZE`, which are `u32`s.
    let (number, start) = ((offset / SIZE as u64) as u32, (offset % SIZE as u64) as u32);
    let room = SIZE as u32 - start;
    if length > room {
        return Err(PacketError::Overrun { offset, length, room });
    }
    Ok((number, start))
}
