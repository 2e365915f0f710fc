//! How many mappings Linux allows a process, and how reservations share them
//! ([design/arena-vm.md `.mappings`](crate::design::arena_vm)).

use tripoint_core::aver;
use tripoint_core::internal::{AtomicUsize, Ordering};

use super::kernel_file;

/// The kernel's own default of `vm.max_map_count`, used if the setting cannot be read.
const DEFAULT: usize = 65_530;

/// The mappings that all reservations of this process counted last, together.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Counts `now` mappings for a reservation that counted `before`, and returns how many of
/// the process's `all` it may take at this moment.
///
/// Calls are in one order, and each sees what those before it counted. So the sum stays at
/// half of `all` or less if each reservation takes no more than this returns.
pub(super) fn account(all: usize, before: usize, now: usize) -> usize {
    let taken = TAKEN.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    aver!(before <= taken, "a reservation counted {before} mappings, and all together {taken}");
    let others = taken.wrapping_sub(before);
    share(all, others)
}

/// One reservation's share of `all`, if the others have `others`: half of what these leave
/// of the half that is for reservations.
const fn share(all: usize, others: usize) -> usize {
    (all / 2).saturating_sub(others) / 2
}

/// The most mappings that a process may have.
pub(super) fn most() -> usize {
    kernel_file::number(c"/proc/sys/vm/max_map_count").unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_one_after_another_stay_below_half() {
        let mut taken = 0;
        for made in 0..100 {
            let share = share(65_530, taken);
            assert!(made > 0 || share == 16_382, "the first has a quarter");
            taken += share;
        }
        assert!(taken <= 65_530 / 2);
        assert_eq!(share(65_530, usize::MAX), 0);
        assert!(most() > 1000, "no system allows so little");
    }

    #[test]
    fn what_a_reservation_counts_itself_does_not_reduce_its_share() {
        // Other tests count meanwhile, far less than this limit.
        let all = usize::MAX / 2;
        let first = account(all, 0, 0);
        let more = account(all, 0, all / 4);
        assert!(more.abs_diff(first) < 1 << 20);
        assert!(account(all, 0, 0) < first - all / 16, "another one's share is reduced");
        assert!(account(all, all / 4, 0).abs_diff(first) < 1 << 20, "and is as before in the end");
    }
}
