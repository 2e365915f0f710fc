//! The number of a pool.

#![forbid(unsafe_code)]

use core::num::NonZeroU32;

/// The serial number of a pool in its arena: small, never zero, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(NonZeroU32);

impl PoolId {
    /// The largest serial number. Tract tables keep it in 24 bits.
    pub const MAX: u32 = (1 << 24) - 1;

    /// The owner of the grains from which an arena allocates descriptors. No client can be
    /// this pool: arenas number their pools from the next serial number on.
    pub const ARENA: Self = Self::new(1).unwrap();

    /// Creates the number of a pool; `None` for zero and above
    /// [`PoolId::MAX`].
    #[must_use]
    pub const fn new(serial: u32) -> Option<Self> {
        match NonZeroU32::new(serial) {
            Some(serial) if serial.get() <= Self::MAX => Some(Self(serial)),
            _ => None,
        }
    }

    /// The serial number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}
