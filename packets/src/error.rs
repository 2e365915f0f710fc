//! What can be wrong with what a device says of a unit, and with what a program asks of a packet.

#![forbid(unsafe_code)]

use core::fmt;

/// Why a packet was refused. The pool, the ring and the packet are as they were.
///
/// `Outside`, `Overrun` and `NotSubmitted` say that a device, or the code that read its ring, named memory that is not its own.
/// The ring counts them ([`PacketRingCounts::refused`](crate::PacketRingCounts::refused)).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PacketError {
    /// No unit of the pool lies there.
    Outside {
        /// What was named, in bytes from the beginning of the region.
        offset: u64,
        /// The bytes of the region.
        size: u64,
    },
    /// A unit was to begin there, and none does.
    Unaligned {
        /// What was named, in bytes from the beginning of the region.
        offset: u64,
        /// The bytes of a unit.
        unit: usize,
    },
    /// The data begin in one unit and would end in the next.
    Overrun {
        /// Where the data begin, in bytes from the beginning of the region.
        offset: u64,
        /// The bytes of the data.
        length: u32,
        /// The bytes from there to the end of the unit.
        room: u32,
    },
    /// The unit is not with this ring: it was never submitted to it, or was completed before.
    NotSubmitted {
        /// The number of the unit.
        number: u32,
    },
    /// The unit has no room for this many bytes.
    NoRoom {
        /// The bytes that were asked for.
        needed: usize,
        /// The bytes that there are.
        room: usize,
    },
}

impl PacketError {
    /// The name of the variant, for records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Outside { .. } => "Outside",
            Self::Unaligned { .. } => "Unaligned",
            Self::Overrun { .. } => "Overrun",
            Self::NotSubmitted { .. } => "NotSubmitted",
            Self::NoRoom { .. } => "NoRoom",
        }
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Outside { offset, size } => write!(
                f,
                "offset {offset} is not in the region of {size} bytes: check that the device was given this region"
            ),
            Self::Unaligned { offset, unit } => write!(
                f,
                "no unit of {unit} bytes begins at offset {offset}: name the first byte of a unit, or its number"
            ),
            Self::Overrun { offset, length, room } => write!(
                f,
                "{length} bytes at offset {offset} reach beyond their unit, which has {room} from there: check the \
                 unit size that the device was given"
            ),
            Self::NotSubmitted { number } => write!(
                f,
                "unit {number} is not with this ring: it was never submitted to it, or was completed before; reset \
                 the device if this goes on"
            ),
            Self::NoRoom { needed, room } => write!(
                f,
                "{needed} bytes do not fit in the {room} that are there: make the headroom or the units of the pool \
                 larger"
            ),
        }
    }
}

tripoint_core::debug_as_text!(PacketError: Outside, Unaligned, Overrun, NotSubmitted, NoRoom);

impl core::error::Error for PacketError {}
