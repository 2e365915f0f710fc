//! Why a session failed.

use core::fmt;
use core::ops::Range;

use tripoint::Error;
use tripoint::packets::PacketError;

/// Why a session failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The pool system refused something.
    Refused(Error),
    /// The pool of packets refused what the device said.
    Packet(PacketError),
    /// The driver of the device refused something.
    Device(virtio_drivers::Error),
    /// There is no network device.
    NoDevice,
    /// These messages were lost, and did not come although they were asked for.
    Gap(Range<u64>),
    /// The records are not those that were sent.
    Digest { expected: u64, found: u64 },
    /// This should hold, and does not.
    Unmet(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "{error}"),
            Self::Packet(error) => write!(f, "{error}"),
            Self::Device(error) => write!(f, "the device: {error}"),
            Self::NoDevice => write!(f, "there is no network device"),
            Self::Gap(Range { start, end }) => write!(f, "gap: messages {start} to {} did not come", end - 1),
            Self::Digest { expected, found } => {
                write!(f, "the digest is {found:#x}, and should be {expected:#x}")
            }
            Self::Unmet(rule) => write!(f, "it does not hold that {rule}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<PacketError> for Failure {
    fn from(error: PacketError) -> Self {
        Self::Packet(error)
    }
}

impl From<virtio_drivers::Error> for Failure {
    fn from(error: virtio_drivers::Error) -> Self {
        Self::Device(error)
    }
}

/// Returns a failure if `holds` is false.
pub(crate) const fn ensure(holds: bool, rule: &'static str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Unmet(rule)) }
}
