//! The sums of the fast path, kept apart from pointers so that they can be fuzzed.
//!
//! This file imports nothing but constants and cannot contain `unsafe`.

#![forbid(unsafe_code)]

use tripoint_core::INLINE_SIZE_MAX;

/// Whether `size` bytes from `init` end at or below `limit`
/// (design/ap.md `.reserve.sum`).
///
/// Addresses are compared, never differences: with a `limit` of zero, which is
/// what a trip stores, `limit - init` would wrap to a huge number and miss the
/// trip. The sum cannot wrap: `size` is at most [`INLINE_SIZE_MAX`], and no arena
/// hands out memory above `ADDRESS_CEILING`, so `init` is at most that.
#[inline(always)]
#[must_use]
pub const fn fits(init: usize, size: usize, limit: usize) -> bool {
    size <= INLINE_SIZE_MAX && init.wrapping_add(size) <= limit
}

/// Whether `init`, which is a multiple of `min_align`, is a multiple of `align`.
#[inline(always)]
#[must_use]
pub const fn is_aligned(init: usize, align: usize, min_align: usize) -> bool {
    align <= min_align || init & (align - 1) == 0
}

/// The limit to publish: the buffer's end or a stop, whichever comes first
/// (design/ap.md `.stop.limit`).
///
/// `budget` is the number of bytes from `origin` up to the stop; `usize::MAX`
/// means there is none.
#[must_use]
pub const fn armed_limit(pool_limit: usize, origin: usize, budget: usize) -> usize {
    let stop = origin.saturating_add(budget);
    if stop < pool_limit { stop } else { pool_limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tripoint_core::ADDRESS_CEILING;

    #[test]
    fn a_tripped_limit_never_fits() {
        for init in [0, 16, ADDRESS_CEILING / 2, ADDRESS_CEILING] {
            for size in [1, 48, INLINE_SIZE_MAX] {
                assert!(!fits(init, size, 0), "{init:#x} {size}");
            }
        }
    }

    #[test]
    fn sizes_that_could_wrap_never_fit() {
        for size in [INLINE_SIZE_MAX + 1, isize::MAX as usize, usize::MAX - 15, usize::MAX] {
            assert!(!fits(4096, size, usize::MAX), "{size:#x}");
        }
        assert!(!fits(ADDRESS_CEILING, INLINE_SIZE_MAX, ADDRESS_CEILING));
    }

    #[test]
    fn the_nearer_of_stop_and_end_is_armed() {
        assert_eq!(armed_limit(200, 100, 50), 150);
        assert_eq!(armed_limit(200, 100, 500), 200);
        assert_eq!(armed_limit(200, 100, usize::MAX), 200);
    }

    #[test]
    fn what_ends_at_or_below_the_limit_fits() {
        assert!(fits(4096, 64, 4160) && fits(4096, 0, 4096));
        assert!(!fits(4096, 65, 4160) && !fits(4096, 0, 4095));
        assert!(fits(4096, INLINE_SIZE_MAX, 4096 + INLINE_SIZE_MAX));
        assert!(fits(ADDRESS_CEILING, INLINE_SIZE_MAX, usize::MAX));
    }

    #[test]
    fn alignment_is_looked_at_only_above_the_pools_own() {
        for init in (0..512).step_by(16) {
            for align in [1, 8, 16] {
                assert!(is_aligned(init, align, 16), "{init} {align}");
            }
            for align in [32, 64, 256] {
                assert_eq!(is_aligned(init, align, 16), init % align == 0, "{init} {align}");
            }
        }
    }
}
