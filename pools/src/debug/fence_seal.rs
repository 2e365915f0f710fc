//! The seal of a fence: a word made of an object's address, size and alignment (design/debug.md `.debug.fence`). Kept apart from
//! pointers, so that laws can be proved of it (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

/// What a seal is made of, apart from the alignment.
pub(super) struct FenceSeal {
    pub(super) addr: usize,
    pub(super) size: usize,
}

impl FenceSeal {
    const fn mask(&self) -> usize {
        let factor = 0x9e37_79b9_7f4a_7c15_u64 as usize;
        (self.addr ^ self.size.rotate_left(usize::BITS / 2)).wrapping_mul(factor)
    }

    /// The exponent of the alignment stands in every byte, so that no change of one
    /// byte makes another alignment of it.
    pub(super) const fn of_align(&self, align: usize) -> usize {
        self.mask() ^ (align.trailing_zeros() as usize * EVERY_BYTE)
    }

    /// The alignment in a seal, if it is one.
    pub(super) fn align_in(&self, seal: usize) -> Option<usize> {
        let exponents = self.mask() ^ seal;
        let exponent = exponents & 0xff;
        if exponent * EVERY_BYTE != exponents {
            return None;
        }
        1_usize.checked_shl(u32::try_from(exponent).ok()?)
    }
}

/// A word whose every byte is one.
const EVERY_BYTE: usize = usize::MAX / 0xff;
