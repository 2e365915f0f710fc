//! Size and alignment of the units of a fixed-size pool.

#![forbid(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;

use tripoint_core::{Align, Error, Result};

use crate::seal::SEAL_SIZE;

/// The size and alignment of a unit.
///
/// Sealed: the pool relies on both being what [`UnitOf`] and [`UnitLayout`] make
/// them, multiples of a word that never change.
pub trait Unit: Copy + Send + Sync + fmt::Debug + sealed::Sealed {
    /// The bytes of a unit: a multiple of its alignment, at least one word. With the feature `hardening` it includes a seal, a word.
    fn size(self) -> usize;

    /// The alignment of every unit, in bytes. That of the layout, at least a
    /// word; and two words if the size is a multiple of that.
    fn align(self) -> usize;
}

mod sealed {
    pub trait Sealed {}
}

/// The unit that holds `layout`, and a seal behind it (design/hardening.md `.mfs`).
const fn unit_for(layout: Layout) -> Option<Layout> {
    let align = if layout.align() < Align::WORD.get() { Align::WORD.get() } else { layout.align() };
    let least = if layout.size() == 0 { 1 } else { layout.size() };
    let Ok(layout) = Layout::from_size_align(least, align) else { return None };
    // Units follow each other, so each has all the alignment their size allows; two
    // words of it are promised, as of blocks of other pools. A seal does not change that.
    let even = 2 * Align::WORD.get();
    // Below `usize::MAX`: a layout has at most `isize::MAX` bytes.
    let Ok(sealed) = Layout::from_size_align(least + SEAL_SIZE, align) else { return None };
    let is_even = layout.pad_to_align().size().is_multiple_of(even)
        || sealed.pad_to_align().size().is_multiple_of(even);
    let align = if align < even && is_even { even } else { align };
    match Layout::from_size_align(sealed.size(), align) {
        Ok(unit) => Some(unit.pad_to_align()),
        Err(_) => None,
    }
}

/// The unit that holds a `T`: known at compile time, so that sizes and
/// alignments in the pool's code are constants (design/pool-mfs.md `.req.fold`).
/// A type that is too large for a unit does not compile.
pub struct UnitOf<T>(PhantomData<fn() -> T>);

impl<T> UnitOf<T> {
    const UNIT: Layout = match unit_for(Layout::new::<T>()) {
        Some(unit) => unit,
        None => panic!("the type, rounded up to its alignment, is above isize::MAX"),
    };

    /// The unit that holds a `T`.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Clone for UnitOf<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for UnitOf<T> {}

impl<T> Default for UnitOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for UnitOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnitOf({} bytes, aligned to {})", self.size(), self.align())
    }
}

impl<T> sealed::Sealed for UnitOf<T> {}

impl<T> Unit for UnitOf<T> {
    #[inline(always)]
    fn size(self) -> usize {
        Self::UNIT.size()
    }

    #[inline(always)]
    fn align(self) -> usize {
        Self::UNIT.align()
    }
}

/// The unit that holds a layout known at run time.
#[derive(Clone, Copy, Debug)]
pub struct UnitLayout(Layout);

impl UnitLayout {
    /// The unit that holds `layout`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a size that, rounded up, is above `isize::MAX`.
    pub const fn new(layout: Layout) -> Result<Self> {
        match unit_for(layout) {
            Some(unit) => Ok(Self(unit)),
            None => Err(Error::Parameter("the unit, rounded up to its alignment, is above isize::MAX")),
        }
    }
}

impl sealed::Sealed for UnitLayout {}

impl Unit for UnitLayout {
    #[inline]
    fn size(self) -> usize {
        self.0.size()
    }

    #[inline]
    fn align(self) -> usize {
        self.0.align()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: usize = size_of::<usize>();

    fn unit(size: usize, align: usize) -> (usize, usize) {
        let unit = UnitLayout::new(Layout::from_size_align(size, align).unwrap()).unwrap();
        (unit.size(), unit.align())
    }

    /// A unit of this alignment that has room for `size` bytes and a seal.
    fn sealed(size: usize, align: usize) -> (usize, usize) {
        let size = (size + SEAL_SIZE).next_multiple_of(align);
        (size, if size.is_multiple_of(2 * WORD) { align.max(2 * WORD) } else { align })
    }

    #[test]
    fn units_are_words_and_multiples_of_their_alignment() {
        assert_eq!(unit(0, 1), sealed(WORD, WORD));
        assert_eq!(unit(1, 1), sealed(WORD, WORD));
        assert_eq!(unit(WORD + 1, 1), sealed(WORD + 1, 2 * WORD));
        assert_eq!(unit(3 * WORD, WORD), sealed(3 * WORD, WORD));
        assert_eq!(unit(64, 1), sealed(64, 2 * WORD));
        assert_eq!(unit(65, 64), sealed(65, 64));
        assert_eq!(unit(0, 4096), sealed(1, 4096));
    }

    #[test]
    fn a_unit_above_isize_max_is_refused() {
        let layout = Layout::from_size_align(isize::MAX as usize, 1).unwrap();
        assert!(matches!(UnitLayout::new(layout), Err(Error::Parameter(_))));
    }

    #[test]
    fn units_of_types_are_those_of_their_layouts() {
        #[repr(align(64))]
        struct Line(#[allow(dead_code)] u8);
        assert_eq!((UnitOf::<Line>::new().size(), UnitOf::<Line>::new().align()), sealed(64, 64));
        assert_eq!((UnitOf::<()>::new().size(), UnitOf::<()>::new().align()), sealed(WORD, WORD));
        assert_eq!(unit(48, 8), (UnitOf::<[u64; 6]>::new().size(), UnitOf::<[u64; 6]>::new().align()));
    }
}
