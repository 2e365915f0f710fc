//! Size classes: numbers for ranges of block sizes, by shifts alone.
//!
//! Sizes up to 64 granules have a class each; above, every power of two is
//! divided into 32 classes (design/pool-tlsf.md `.tlsf.class`).

#![forbid(unsafe_code)]

use crate::land::GRANULE;

/// The classes that share one word of the bitmap, and into which a power of two
/// is divided.
pub(super) const ROW: usize = 32;

/// By how many bits the sizes of the highest class but one are shifted: it bounds the size
/// of an allocation at 4 TiB, or at what 32 bits address.
const SHIFT_MAX: usize = if usize::BITS == 64 { 32 } else { usize::BITS as usize - 10 };

/// The words of the bitmap.
pub(super) const ROWS: usize = SHIFT_MAX + 2;

/// The number of classes.
pub(super) const CLASSES: usize = ROWS * ROW;

/// The largest size that an allocation may have, in bytes: the least size of the
/// highest class.
pub(super) const SIZE_MAX: usize = (2 * ROW - 1) << SHIFT_MAX << GRANULE.trailing_zeros();
const _: () = assert!(SIZE_MAX <= isize::MAX as usize, "sizes are sizes of layouts");

/// By how many bits a number of granules is shifted to get its place in its row.
#[inline]
const fn shift_of(granules: usize) -> usize {
    (granules | ROW).ilog2() as usize - ROW.trailing_zeros() as usize
}

/// The class of a block of this size, which is the highest whose every block can
/// be cut to its least size from it.
#[inline]
pub(super) const fn class_of(size: usize) -> usize {
    let granules = size / GRANULE;
    let shift = shift_of(granules);
    let class = shift * ROW + (granules >> shift);
    if class < CLASSES { class } else { CLASSES - 1 }
}

/// The least size of a class, in bytes.
#[inline]
pub(super) const fn least_size(class: usize) -> usize {
    let shift = (class / ROW).saturating_sub(1);
    (class - shift * ROW) << shift << GRANULE.trailing_zeros()
}

/// The size that an allocation of `size` bytes takes: the least size of a class.
/// `None` above [`SIZE_MAX`].
#[inline]
pub(super) const fn round_up(size: usize) -> Option<usize> {
    if size > SIZE_MAX {
        return None;
    }
    let granules = if size == 0 { 1 } else { size.div_ceil(GRANULE) };
    let last = (1 << shift_of(granules)) - 1;
    Some(((granules + last) & !last) * GRANULE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_sizes_are_those_of_their_class_and_rise() {
        let mut last = 0;
        for class in 1..CLASSES {
            let least = least_size(class);
            assert!(least > last && class_of(least) == class, "class {class}");
            assert_eq!(class_of(least - GRANULE), class - 1);
            assert_eq!(round_up(least), Some(least));
            assert_eq!(round_up(last + 1), Some(least));
            last = least;
        }
        assert_eq!(last, SIZE_MAX);
        assert_eq!(round_up(SIZE_MAX + 1), None);
        assert_eq!(class_of(isize::MAX as usize), CLASSES - 1);
    }

    #[test]
    fn rounding_wastes_at_most_one_part_in_32() {
        for size in (0..1 << 16).step_by(if cfg!(miri) { 251 } else { 1 }).chain([
            1 << 20,
            (1 << 20) + 1,
            SIZE_MAX - 1,
        ]) {
            let rounded = round_up(size).unwrap();
            let waste = rounded - size.max(1);
            assert!(waste < GRANULE || waste < size.div_ceil(ROW), "{size}");
        }
    }
}
