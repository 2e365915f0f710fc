//! Every call that a platform can refuse, refused the first, second, ... time.
//! (design/arena-vm.md `.req.exact`, `.req.test`.)

use core::alloc::Layout;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Platform, Prefault};
use tripoint_core::{Addr, Arena, Describe, Error, Event};

use crate::common::{Audited, GRAIN, Recorder, assert_books, on_each_failing, small, write};

/// What a request may say when this call is refused.
fn expected(call: Call) -> Error {
    match call {
        Call::Commit | Call::Populate | Call::PopulateInUse | Call::Decommit => Error::Memory,
        _ => Error::Resource,
    }
}

fn every_option() -> [ArenaVmOptions; 5] {
    let share = ArenaVmOptions { spare_share: 10, ..small() };
    [
        share,
        ArenaVmOptions { prefault: Prefault::AtFill, ..share },
        ArenaVmOptions { prefault: Prefault::Size(3 * GRAIN), inherit_on_fork: false, ..share },
        ArenaVmOptions { lock: true, huge_pages: true, reserve: 16 << 20, reserve_floor: 16 << 20, ..share },
        ArenaVmOptions { guard: true, ..share },
    ]
}

/// Uses an arena in every way. Returns the first error of a request, and the
/// bytes of tracts that are still allocated.
fn exercise<P: Platform>(arena: &ArenaVm<P>) -> (Option<Error>, usize) {
    let mut first = None;
    let mut note = |error| _ = first.get_or_insert(error);
    let pool = arena.register().unwrap();
    let mut out = Vec::new();
    for round in 0..6 {
        match arena.alloc_tracts((1 + round % 3) * GRAIN, pool) {
            Ok(block) => {
                write(block, 0x5a);
                out.push(block);
            }
            Err(error) => note(error),
        }
        if let Err(error) = arena.alloc_descriptor(Layout::from_size_align(512, 64).unwrap()) {
            note(error);
        }
        if round % 2 == 1
            && let Some(block) = out.pop()
        {
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
        }
    }
    arena.trim();
    let in_use = out.iter().map(|block| block.size()).sum();
    (first, in_use)
}

/// Runs a creation and an exercise with one failure; false where the platform
/// was never asked so often.
fn fails_cleanly(
    failing: &Failing<&Audited<&dyn Platform>>,
    audited: &Audited<&dyn Platform>,
    options: ArenaVmOptions,
    call: Call,
    nth: u32,
) -> bool {
    let seen = failing.seen(call);
    failing.fail(call, nth);
    match ArenaVm::create_on(failing, options) {
        Err(error) => assert_eq!(error, expected(call), "{call:?} {nth}"),
        Ok(arena) => {
            let (error, in_use) = exercise(&arena);
            let asked = failing.seen(call) >= seen + nth;
            if let Some(error) = error {
                assert_eq!(error, expected(call), "{call:?} {nth}");
                assert_eq!(arena.last_refusal().unwrap().call, call.name());
            }
            let lenient = matches!(call, Call::Decommit | Call::Unlock | Call::Reserve | Call::PopulateInUse);
            // If a page for a descriptor was refused, a spare grain may have served it.
            let kept = arena.last_refusal().is_some_and(|refusal| refusal.call == call.name());
            assert!(!asked || error.is_some() || lenient || kept, "{call:?} {nth} was noticed");
            assert!(asked || error.is_none(), "{call:?} {nth} was not refused");
            assert_books(&arena, in_use);
            let (there, counted) = (audited.committed(), arena.sizes().committed);
            let undone = matches!(call, Call::Commit | Call::Populate);
            assert!(
                there >= counted && (there == counted || !undone),
                "{call:?} {nth}: {there} for {counted}"
            );
            // What the failure left behind does not matter once it is over.
            failing.heal();
            arena.trim();
            let (error, more) = exercise(&arena);
            assert_eq!(error, None, "{call:?} {nth}");
            assert_books(&arena, in_use + more);
        }
    }
    let asked = failing.seen(call) >= seen + nth;
    failing.heal();
    assert_eq!(audited.reservations(), 0, "released");
    asked
}

#[test]
#[cfg_attr(miri, ignore = "every call of every kind in turn: hours")]
fn every_call_may_fail_every_time() {
    on_each_failing(|failing, audited| {
        // The portable platform can neither lock nor keep from children; Windows has no huge pages.
        let refuses = match audited.name() {
            "linux" => 4..4,
            "windows" => 3..4,
            _ => 2..4,
        };
        for (index, options) in every_option().into_iter().enumerate() {
            if refuses.contains(&index) {
                assert_eq!(ArenaVm::create_on(failing, options).unwrap_err(), Error::Resource);
                continue;
            }
            for call in Call::ALL.into_iter().filter(|&call| call != Call::Release) {
                let times =
                    (1..).find(|&nth| !fails_cleanly(failing, audited, options, call, nth)).unwrap() - 1;
                let expects_some = match call {
                    Call::Reserve => false,
                    Call::Commit | Call::Decommit => true,
                    Call::Populate => index == 1 || index == 2,
                    Call::PopulateInUse => index == 1 || index == 2,
                    Call::NoInherit => index == 2,
                    // `merge` and the watch of writes have tests of their own.
                    Call::Collapse | Call::OpenWatch | Call::Watch | Call::TakeWritten => false,
                    // So have contents (`contents`).
                    Call::Zero | Call::Discard => false,
                    // As have explicit huge pages and nodes (`chosen_memory`).
                    Call::MapHugePages | Call::FillHugePages | Call::EmptyHugePages => false,
                    Call::MemoryNodes | Call::Place | Call::Locate | Call::PageSizes => false,
                    Call::MapFile | Call::UnmapFile => false,
                    // And addresses that are refused (`refused_addresses`).
                    Call::ReserveWithRoom | Call::Extend => false,
                    _ => index == 3,
                };
                assert!(times > 0 || !expects_some, "{call:?} of options {index} was driven");
            }
        }
    });
}

#[test]
fn a_refused_fill_changes_nothing_but_the_table() {
    on_each_failing(|failing, audited| {
        let arena = ArenaVm::create_on(failing, small()).unwrap();
        let pool = arena.register().unwrap();
        failing.fail(Call::Commit, 1);
        assert_eq!(arena.alloc_tracts(GRAIN, pool), Err(Error::Memory));
        assert_eq!((arena.sizes().committed, arena.sizes().committed_high_water), (0, 0));
        failing.fail(Call::Commit, 2);
        assert_eq!(arena.alloc_tracts(GRAIN, pool), Err(Error::Memory));
        let refusal = arena.last_refusal().unwrap();
        assert_eq!((arena.sizes().committed, arena.sizes().own), (4096, 4096));
        assert_eq!(audited.committed(), 4096);
        assert_eq!(arena.pool_of(Addr::new(refusal.addr)), None);
        let block = arena.alloc_tracts(GRAIN, pool).unwrap();
        assert_eq!((refusal.addr, refusal.size), (block.base().addr().get(), GRAIN));
        let mut text = String::new();
        arena.describe(&mut text, 0).unwrap();
        assert!(text.contains("last refusal"));
    });
}

#[test]
fn what_cannot_be_decommitted_stays_spare_and_serves() {
    on_each_failing(|failing, audited| {
        let recorder = Recorder::leaked();
        let options = ArenaVmOptions { spare_share: 0, event_hook: Some(recorder), ..small() };
        let arena = ArenaVm::create_on(failing, options).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
        failing.fail_always(Call::Decommit);
        recorder.take();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!((arena.sizes().spare, arena.trim()), (2 * GRAIN, 0));
        assert_eq!(arena.set_commit_limit(GRAIN), Err(Error::CommitLimit));
        assert_eq!(arena.alloc_tracts(2 * GRAIN, pool), Ok(block));
        assert_eq!(recorder.take(), [], "no growth, no shrinking");
        write(block, 1);
        failing.heal();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!(recorder.take(), [Event::Shrink { size: 2 * GRAIN }]);
        assert_eq!(audited.committed(), arena.sizes().committed);
    });
}

#[test]
fn locked_memory_is_locked_whether_it_can_be_decommitted_or_not() {
    on_each_failing(|failing, audited| {
        let options = ArenaVmOptions { lock: true, spare_share: 0, ..small() };
        let arena = ArenaVm::create_on(failing, options).unwrap();
        let pool = arena.register().unwrap();
        let Ok(block) = arena.alloc_tracts(2 * GRAIN, pool) else {
            assert_eq!((audited.name(), audited.locked()), ("portable", 0));
            return;
        };
        assert_eq!(audited.locked(), arena.sizes().committed);
        failing.fail(Call::Decommit, 1);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!((audited.locked(), arena.sizes().spare), (arena.sizes().committed, 2 * GRAIN));
        assert_eq!(arena.trim(), 2 * GRAIN);
        assert_eq!(audited.locked(), arena.sizes().committed);
    });
}

#[test]
fn a_refused_release_is_not_a_panic() {
    on_each_failing(|failing, audited| {
        failing.fail(Call::Release, 1);
        let arena = ArenaVm::create_on(failing, small()).unwrap();
        // The first descriptor lies right behind the table, a page of 64 entries.
        let descriptor = arena.alloc_descriptor(Layout::new::<u64>()).unwrap();
        drop(arena);
        assert_eq!((failing.seen(Call::Release), audited.reservations()), (1, 1));
        // SAFETY: the reservation begins with the page of table.
        audited.release_leaked(unsafe { descriptor.sub(4096) });
    });
}
