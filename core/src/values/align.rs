//! Alignments, with sums that cannot wrap.

#![forbid(unsafe_code)]

/// An alignment in bytes: a power of two.
///
/// ```
/// use tripoint_core::Align;
///
/// let align = Align::new(64).unwrap();
/// assert_eq!(align.round_up(100), Some(128));
/// assert_eq!(align.round_up(usize::MAX), None); // no sum wraps
/// assert_eq!(Align::new(48), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Align(usize);

impl Align {
    /// One machine word.
    pub const WORD: Self = Self(size_of::<usize>());

    /// The alignment of `bytes`, or `None` if that is no power of two.
    #[must_use]
    pub const fn new(bytes: usize) -> Option<Self> {
        if bytes.is_power_of_two() { Some(Self(bytes)) } else { None }
    }

    /// The alignment of `T`.
    #[must_use]
    pub const fn of<T>() -> Self {
        Self(align_of::<T>())
    }

    /// The alignment of a layout.
    #[must_use]
    pub const fn of_layout(layout: core::alloc::Layout) -> Self {
        Self(layout.align())
    }

    /// The alignment in bytes.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }

    /// The bits that are zero in every multiple.
    #[must_use]
    pub const fn mask(self) -> usize {
        self.0 - 1
    }

    /// The first multiple at or above `value`, or `None` if it does not fit.
    #[must_use]
    pub const fn round_up(self, value: usize) -> Option<usize> {
        match value.checked_add(self.mask()) {
            Some(sum) => Some(sum & !self.mask()),
            None => None,
        }
    }

    /// The last multiple at or below `value`.
    #[must_use]
    pub const fn round_down(self, value: usize) -> usize {
        value & !self.mask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_powers_of_two() {
        for bytes in [0, 3, 6, 12, usize::MAX] {
            assert_eq!(Align::new(bytes), None);
        }
        let page = Align::new(4096).unwrap();
        assert_eq!(page.round_up(1), Some(4096));
        assert_eq!(page.round_up(4096), Some(4096));
        assert_eq!(page.round_down(8191), 4096);
    }
}
