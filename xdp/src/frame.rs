//! What a frame takes of a unit.

/// The bytes that the kernel keeps for itself at the front of each unit (`XDP_PACKET_HEADROOM`).
const KERNEL_HEADROOM: u32 = 256;

/// The bytes that the MTU does not count: a header of Ethernet with a tag of a VLAN.
pub(crate) const HEADER_BYTES: u32 = 18;

/// A header of Ethernet without a tag.
#[cfg(feature = "smoltcp")]
pub(crate) const PLAIN_HEADER_BYTES: u32 = 14;

/// The most bytes of a frame in a unit of which the pool keeps `headroom`.
pub(crate) const fn frame_max(unit: u32, headroom: u32) -> u32 {
    unit.saturating_sub(KERNEL_HEADROOM.saturating_add(headroom))
}
