//! Growth by steps of what is committed (design/arena-vm.md `.grow.step`).

use tripoint_arena_vm::mock::Call;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Prefault};
use tripoint_core::{Arena, Error};

use crate::common::{GRAIN, assert_books, on_each_failing, small};

const GRAINS: usize = if cfg!(miri) { 48 } else { 1000 };

fn options() -> ArenaVmOptions {
    ArenaVmOptions { reserve: 2 * GRAINS * GRAIN, ..small() }
}

/// Grains that are asked for one by one take few commits, and what is committed ahead of them is spare, within its share.
#[test]
fn grains_are_committed_by_steps_that_grow() {
    on_each_failing(|failing, audited| {
        let commits = |spare_share| {
            let options = ArenaVmOptions { spare_share, ..options() };
            let arena = ArenaVm::create_on(failing, options).unwrap();
            let pool = arena.register().unwrap();
            let before = failing.seen(Call::Commit);
            for count in 1..=GRAINS {
                arena.alloc_tracts(GRAIN, pool).unwrap();
                let sizes = arena.sizes();
                let share = u64::from(spare_share);
                assert!(sizes.spare as u64 * 100 <= sizes.committed as u64 * share, "{sizes:?}");
                assert_eq!(sizes.committed, sizes.own + sizes.spare + count * GRAIN);
            }
            assert_books(&arena, GRAINS * GRAIN);
            assert_eq!(audited.committed(), arena.sizes().committed);
            assert_eq!(
                arena.trim(),
                arena.counts().growth.get() as usize - GRAINS * GRAIN - arena.sizes().own
            );
            failing.seen(Call::Commit) - before
        };
        assert!(commits(0) as usize >= GRAINS, "without spare memory each grain is a commit");
        if !cfg!(miri) {
            let (few, fewest) = (commits(10), commits(25));
            assert!(few <= 80 && fewest <= 45, "{few} and {fewest} commits");
            assert_eq!(commits(100), fewest, "a larger share makes no larger steps");
        }
    });
}

/// What is committed ahead takes nothing from those who need it: neither budget nor addresses.
#[test]
fn all_of_the_limit_and_of_the_addresses_can_be_used() {
    let grains = if cfg!(miri) { 40 } else { 300 };
    on_each_failing(|failing, _| {
        let taken = |options: ArenaVmOptions, refusal| {
            let arena = ArenaVm::create_on(failing, options).unwrap();
            let (one, other) = (arena.register().unwrap(), arena.register().unwrap());
            let mut count = 0;
            loop {
                match arena.alloc_tracts(GRAIN, if count % 2 == 0 { one } else { other }) {
                    Ok(_) => count += 1,
                    Err(error) => break assert_eq!(error, refusal),
                }
            }
            assert_eq!(arena.sizes().spare, 0);
            count
        };
        for (options, refusal) in [
            (ArenaVmOptions { commit_limit: grains * GRAIN, ..options() }, Error::CommitLimit),
            (ArenaVmOptions { reserve: grains * GRAIN, ..options() }, Error::Limit),
        ] {
            let exact = taken(ArenaVmOptions { spare_share: 0, ..options }, refusal);
            assert_eq!(taken(options, refusal), exact, "{options:?}");
        }
    });
}

/// Requests of more than half a step leave no rest of each that serves no other, if they are of one size; those of several
/// sizes leave less than a fifth of the limit.
#[test]
fn large_requests_leave_no_holes_in_what_is_committed() {
    on_each_failing(|failing, _| {
        for sizes in [&[9][..], &[17], &[7, 9, 13], &[3, 11]] {
            let count_of = |spare_share| {
                let arena = ArenaVm::create_on(failing, ArenaVmOptions { spare_share, ..options() }).unwrap();
                let pool = arena.register().unwrap();
                let mut taken = 0;
                for size in sizes.iter().cycle() {
                    if arena.alloc_tracts(size * GRAIN, pool).is_err() {
                        return taken;
                    }
                    taken += size;
                    let now = arena.sizes();
                    assert!(
                        now.spare as u64 * 100 <= now.committed as u64 * u64::from(spare_share),
                        "{sizes:?}, {now:?}"
                    );
                }
                taken
            };
            let (taken, exact) = (count_of(25), count_of(0));
            assert!(taken * 10 >= exact * 8, "{sizes:?}: {taken} of {exact}");
            assert!(sizes.len() > 1 || taken == exact, "{sizes:?}: {taken} of {exact}");
        }
    });
}

/// A large request finds the room that was committed ahead of need.
#[test]
fn a_request_near_the_limit_gets_what_was_committed_ahead() {
    on_each_failing(|failing, _| {
        let limit = 40 * GRAIN;
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { commit_limit: limit, ..options() }).unwrap();
        let pool = arena.register().unwrap();
        for _ in 0..17 {
            arena.alloc_tracts(GRAIN, pool).unwrap();
        }
        let sizes = arena.sizes();
        assert!(sizes.spare > 0, "{sizes:?}");
        let rest = (limit - sizes.committed + sizes.spare) / GRAIN * GRAIN;
        arena.alloc_tracts(rest, pool).unwrap();
        assert_eq!(arena.alloc_tracts(GRAIN, pool), Err(Error::CommitLimit));
    });
}

/// Pages that get their memory when they are committed are committed when they are needed.
#[test]
fn what_is_populated_is_not_committed_ahead() {
    on_each_failing(|failing, _| {
        let arena =
            ArenaVm::create_on(failing, ArenaVmOptions { prefault: Prefault::AtFill, ..options() }).unwrap();
        let pool = arena.register().unwrap();
        for _ in 0..40 {
            arena.alloc_tracts(GRAIN, pool).unwrap();
            assert_eq!(arena.sizes().spare, 0);
        }
    });
}

/// If a step is refused, what was asked for is committed.
#[test]
fn a_step_that_is_refused_refuses_no_request() {
    on_each_failing(|failing, audited| {
        let arena = ArenaVm::create_on(failing, options()).unwrap();
        let pool = arena.register().unwrap();
        while arena.sizes().committed < 16 * GRAIN || arena.sizes().spare > 0 {
            arena.alloc_tracts(GRAIN, pool).unwrap();
        }
        let before = arena.sizes().committed;
        failing.fail(Call::Commit, 1);
        arena.alloc_tracts(GRAIN, pool).unwrap();
        assert_eq!(arena.sizes().committed, before + GRAIN);
        assert_eq!(audited.committed(), arena.sizes().committed);
        // The next one has its step again.
        arena.alloc_tracts(GRAIN, pool).unwrap();
        assert!(arena.sizes().spare > 0);
    });
}
