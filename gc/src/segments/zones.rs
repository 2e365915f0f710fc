//! Where objects moved away from, as far as a word can say it.

use core::ops::BitOrAssign;

use tripoint_core::{Addr, AddrRange};

/// Zones of the address space. Each bit is one zone: every stripe of [`Zones::STRIPE`] bytes whose number, modulo the
/// number of zones, is that of the bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Zones(pub(crate) usize);

impl Zones {
    /// The zones: as many as a word has bits.
    const COUNT: usize = usize::BITS as usize;
    /// A stripe has 1 MiB: objects that were allocated together are in few zones, so that others do not seem to have
    /// moved.
    const STRIPE: usize = 1 << 20;

    /// The zone of an address.
    pub(crate) const fn around(addr: Addr) -> Self {
        Self(1 << (addr.get() / Self::STRIPE % Self::COUNT))
    }

    /// The zones of a range that is not empty.
    #[inline]
    pub(crate) fn of(range: AddrRange) -> Self {
        let (first, last) = (range.base().get() / Self::STRIPE, (range.limit().get() - 1) / Self::STRIPE);
        if last - first >= Self::COUNT {
            return Self(usize::MAX);
        }
        (first..=last).fold(Self::default(), |zones, stripe| Self(zones.0 | 1 << (stripe % Self::COUNT)))
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOrAssign for Zones {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
