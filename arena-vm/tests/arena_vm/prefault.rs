//! Prefaulting: what is committed at creation, and what it keeps.

use tripoint_arena_vm::Platform;
use tripoint_arena_vm::mock::Call;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Prefault};
use tripoint_core::{Arena, Error};

use crate::common::{GRAIN, assert_books, holds, on_each, on_each_failing, small, smaller, write};

#[test]
fn everything_is_committed_once_and_kept() {
    on_each_failing(|failing, audited| {
        // Twenty grains with their entries and a page would just fit.
        let limit = 20 * (GRAIN + 16) + 4096;
        let options = ArenaVmOptions { commit_limit: limit, prefault: Prefault::Everything, ..small() };
        let arena = ArenaVm::create_on(failing, options).unwrap();
        let sizes = arena.sizes();
        assert!(sizes.committed <= limit && sizes.committed > limit - 3 * GRAIN, "{sizes:?}");
        assert_eq!(sizes.spare, sizes.committed - sizes.own);
        assert_eq!(failing.seen(Call::Populate), 1);
        arena.alloc_descriptor(core::alloc::Layout::new::<u64>()).unwrap();
        assert_eq!(arena.sizes().spare, sizes.spare, "descriptors have room beside it");
        arena.freeze();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(sizes.spare, pool).unwrap();
        write(block, 1);
        assert_eq!(arena.alloc_tracts(1, pool), Err(Error::Frozen));
        arena.thaw();
        let committed = arena.sizes().committed;
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!(arena.sizes().committed, committed, "what was prefaulted is kept");
        assert_eq!(arena.trim(), sizes.spare);
        assert_eq!(audited.committed(), arena.sizes().committed);
    });
}

#[test]
fn everything_stops_at_the_end_of_the_range() {
    on_each(|platform| {
        let options = ArenaVmOptions { commit_limit: 1 << 30, prefault: Prefault::Everything, ..smaller() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        let spare = arena.sizes().spare;
        assert!(spare < options.reserve && spare > options.reserve / 4 * 3);
        assert_books(&arena, 0);
    });
}

#[test]
fn a_stated_size_is_committed_at_creation() {
    on_each(|platform| {
        let options = ArenaVmOptions { prefault: Prefault::Size(3 * GRAIN - 1), ..small() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        assert_eq!(arena.sizes().spare, 3 * GRAIN);
        let too_much = ArenaVmOptions { prefault: Prefault::Size(1 << 30), ..small() };
        assert_eq!(ArenaVm::create_on(platform, too_much).unwrap_err(), Error::Limit);
        let too_dear = ArenaVmOptions { commit_limit: 2 * GRAIN, ..options };
        assert_eq!(ArenaVm::create_on(platform, too_dear).unwrap_err(), Error::CommitLimit);
    });
}

#[test]
fn memory_is_populated_ahead_by_steps() {
    on_each_failing(|failing, audited| {
        let ahead = Prefault::Ahead(8 * GRAIN - 1);
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { prefault: ahead, ..small() }).unwrap();
        assert_eq!((arena.sizes().spare, failing.seen(Call::Populate)), (0, 0));
        let pool = arena.register().unwrap();
        let populated = failing.seen(Call::Populate);
        let blocks: Vec<_> = (0..8).map(|_| arena.alloc_tracts(GRAIN, pool).unwrap()).collect();
        assert_eq!(failing.seen(Call::Populate), populated + 1, "once for eight grains");
        assert_eq!(arena.sizes().spare, 0);
        for block in blocks {
            write(block, 1);
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
        }
        assert_eq!(arena.sizes().spare, 8 * GRAIN, "what was populated is kept");
        let large = arena.alloc_tracts(20 * GRAIN, pool).unwrap();
        assert_eq!(arena.sizes().spare, 8 * GRAIN, "more than a step is committed as it is");
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(large, pool) };
        arena.trim();
        // Room for two grains, but not for a step.
        arena.set_commit_limit(arena.sizes().committed + 2 * GRAIN).unwrap();
        arena.alloc_tracts(GRAIN, pool).unwrap();
        assert_eq!(arena.sizes().spare, 0);
        arena.freeze();
        let refused = arena.counts().growth_refused.get();
        assert_eq!(arena.alloc_tracts(GRAIN, pool), Err(Error::Frozen));
        assert_eq!(arena.counts().growth_refused.get(), refused + 1, "refused once");
        assert_eq!(audited.committed(), arena.sizes().committed);
    });
}

#[test]
fn prefault_covers_all_that_is_committed_or_says_that_it_cannot() {
    on_each_failing(|failing, audited| {
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { spare_share: 100, ..small() }).unwrap();
        assert_eq!(arena.prefault(), Ok(0));
        let pool = arena.register().unwrap();
        arena.alloc_descriptor(core::alloc::Layout::new::<u64>()).unwrap();
        let blocks: Vec<_> = (0..3).map(|_| arena.alloc_tracts(GRAIN, pool).unwrap()).collect();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(blocks[0], pool) };
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(blocks[1], pool) };
        arena.freeze();
        if failing_can_populate(audited) {
            assert_eq!(arena.prefault(), Ok(arena.sizes().committed));
            for nth in 1..=3 {
                failing.fail(Call::PopulateInUse, nth);
                assert_eq!(arena.prefault(), Err(Error::Memory));
            }
        } else {
            assert_eq!(arena.prefault(), Err(Error::Memory));
            assert_eq!(arena.last_refusal().unwrap().call, "populate_in_use");
        }
        assert_books(&arena, GRAIN);
    });
}

fn failing_can_populate<P: tripoint_arena_vm::Platform>(platform: &P) -> bool {
    platform.name() == "linux"
}

/// Huge pages at once: as far as they fit, with contents unchanged. Refusals are reported,
/// and an arena without the option has nothing to do.
#[test]
fn merging_puts_what_is_committed_on_huge_pages() {
    const HUGE: usize = 2 << 20;
    on_each_failing(|failing, audited| {
        let plain = ArenaVm::create_on(failing, small()).unwrap();
        let pool = plain.register().unwrap();
        plain.alloc_tracts(GRAIN, pool).unwrap();
        assert_eq!((plain.merge(), failing.seen(Call::Collapse)), (Ok(0), 0));
        let options = ArenaVmOptions { reserve: 64 << 20, huge_pages: true, ..small() };
        let arena = ArenaVm::create_on(failing, options);
        if audited.name() != "linux" {
            return assert_eq!(arena.err(), Some(Error::Resource), "it has no huge pages");
        }
        let arena = arena.unwrap();
        let pool = arena.register().unwrap();
        assert_eq!(arena.merge(), Ok(0), "nothing is committed");
        let block = arena.alloc_tracts(3 * HUGE, pool).unwrap();
        write(block, 7);
        failing.fail(Call::Collapse, 1);
        assert_eq!(arena.merge(), Err(Error::Resource));
        assert_eq!(arena.last_refusal().unwrap().call, "collapse");
        match arena.merge() {
            Ok(merged) => assert!(merged >= 2 * HUGE && merged.is_multiple_of(HUGE), "{merged}"),
            Err(error) => tripoint_oracle::skipped!("{error}: {:?}", arena.last_refusal()),
        }
        assert!(holds(block, 7));
    });
}
