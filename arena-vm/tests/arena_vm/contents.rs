//! Blocks that are made zero, and memory that is returned while it stays committed (design/arena-vm.md `.zero`).

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Platform, Prefault};
use tripoint_core::{Addr, AddrRange, Arena, Block};
use tripoint_oracle::all_are;

use crate::common::{GRAIN, on_each_failing, small};

/// Large enough that the platform is asked.
const SIZE: usize = 8 * GRAIN;
const DIRT: u8 = 0x5a;

fn written<P: Platform>(arena: &ArenaVm<P>) -> Block {
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(SIZE, pool).unwrap();
    // SAFETY: a new block.
    unsafe { block.base().write_bytes(DIRT, SIZE) };
    block
}

/// The bytes of a block from one offset to another.
fn bytes(block: Block, from: usize, to: usize) -> &'static [u8] {
    // SAFETY: the test has the block, does not write to it meanwhile, and forgets these bytes before it does.
    unsafe { core::slice::from_raw_parts(block.base().add(from).as_ptr(), to - from) }
}

fn part(block: Block, from: usize, to: usize) -> Block {
    // SAFETY: a part of the block.
    unsafe { Block::new(block.base().add(from), to - from) }
}

/// Makes a part of a block zero, and checks that just this part is.
fn assert_zeroes<P: Platform>(arena: &ArenaVm<P>, block: Block, (from, to): (usize, usize)) {
    // SAFETY: a part of a block that the test has.
    unsafe { arena.zero(part(block, from, to)) };
    assert!(all_are(bytes(block, from, to), 0), "{from} to {to}");
    assert!(all_are(bytes(block, 0, from), DIRT) && all_are(bytes(block, to, SIZE), DIRT), "{from} to {to}");
    // SAFETY: a block that the test has.
    unsafe { block.base().write_bytes(DIRT, SIZE) };
}

/// Every part that is asked for is zero, and no other, also if the platform refuses.
#[test]
fn a_part_of_a_block_is_made_zero() {
    on_each_failing(|failing, _| {
        let arena = ArenaVm::create_on(failing, small()).unwrap();
        let block = written(&arena);
        for range in [(0, SIZE), (1, SIZE - 1), (4096, SIZE), (4095, 300_001), (100, 200), (7, 7), (0, 0)] {
            assert_zeroes(&arena, block, range);
            failing.fail(Call::Zero, 1);
            assert_zeroes(&arena, block, range);
            failing.heal();
        }
        assert!(failing.seen(Call::Zero) > 0);
    });
}

/// The arenas whose pages keep their memory are written to, and nothing is asked of the platform.
fn on_keeping(test: impl Fn(&Failing<&dyn Platform>, &ArenaVm<&Failing<&dyn Platform>>)) {
    on_each_failing(|_, audited| {
        let failing = Failing::new(audited as &dyn Platform);
        let frozen = ArenaVm::create_on(&failing, small()).unwrap();
        let pool = frozen.register().unwrap();
        // Spare memory, for what is allocated when the arena is frozen.
        let block = frozen.alloc_tracts(SIZE, pool).unwrap();
        // SAFETY: allocated above, freed once.
        unsafe { frozen.free_tracts(block, pool) };
        frozen.freeze();
        test(&failing, &frozen);
        for prefault in [Prefault::AtFill, Prefault::Ahead(GRAIN), Prefault::Size(SIZE)] {
            test(&failing, &ArenaVm::create_on(&failing, ArenaVmOptions { prefault, ..small() }).unwrap());
        }
        let locked = ArenaVm::create_on(&failing, ArenaVmOptions { lock: true, ..small() }).unwrap();
        if locked.alloc_tracts(SIZE, locked.register().unwrap()).is_ok() {
            test(&failing, &locked);
        }
        let watched = ArenaVm::create_on(&failing, small()).unwrap();
        if watched.write_watch().is_ok() {
            test(&failing, &watched);
        }
    });
}

#[test]
fn memory_that_is_kept_is_written() {
    on_keeping(|failing, arena| {
        let block = written(arena);
        let asked = (failing.seen(Call::Zero), failing.seen(Call::Discard));
        assert_zeroes(arena, block, (1, SIZE));
        // SAFETY: a block that the test has, whose contents it does not need.
        assert_eq!(unsafe { arena.discard(block.range()) }, None);
        assert!(all_are(bytes(block, 0, SIZE), DIRT));
        assert_eq!((failing.seen(Call::Zero), failing.seen(Call::Discard)), asked);
    });
}

/// What is discarded is whole pages within what was asked for; they read as zero, stay committed, and nothing else changes.
#[test]
fn whole_pages_are_discarded() {
    on_each_failing(|failing, audited| {
        let arena = ArenaVm::create_on(failing, small()).unwrap();
        let block = written(&arena);
        let page = arena.platform().page_size();
        let range = |from: usize, to: usize| {
            AddrRange::new(
                Addr::new(block.base().addr().get() + from),
                Addr::new(block.base().addr().get() + to),
            )
            .unwrap()
        };
        let committed = audited.committed();
        failing.fail(Call::Discard, 1);
        // SAFETY: a block that the test has, whose contents it does not need.
        assert_eq!(unsafe { arena.discard(range(0, page)) }, None);
        assert!(arena.last_refusal().is_some_and(|refusal| refusal.call == "discard"));
        // SAFETY: a block that the test has, whose contents it does not need.
        let nothing = unsafe { arena.discard(range(1, page)) };
        assert_eq!(nothing, None, "no whole page");
        // SAFETY: a block that the test has, whose contents it does not need.
        let Some(done) = (unsafe { arena.discard(range(1, 5 * page + 1)) }) else {
            assert!(audited.name() != "linux", "this platform cannot");
            return;
        };
        assert_eq!(done, range(page, 5 * page));
        assert!(all_are(bytes(block, 0, page), DIRT) && all_are(bytes(block, 5 * page, SIZE), DIRT));
        assert!(all_are(bytes(block, page, 5 * page), 0));
        assert_eq!(audited.committed(), committed);
        // SAFETY: a range outside of all tracts: nothing happens to it.
        unsafe {
            assert_eq!(arena.discard(AddrRange::with_size(arena.range().base(), 2 * page).unwrap()), None)
        };
    });
}

/// Pages that no one has written to have no memory after they were made zero.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn what_has_no_memory_gets_none() {
    use tripoint_arena_vm::Native;

    let size = 16 << 20;
    let arena = ArenaVm::create_on(Native::new(), ArenaVmOptions { reserve: 64 << 20, ..small() }).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(size, pool).unwrap();
    let in_memory = || arena.page_report().map(|report| report.total());
    let Ok(before) = in_memory() else {
        return tripoint_oracle::skipped!(
            "this kernel does not say where memory is: {:?}",
            arena.last_refusal()
        );
    };
    // SAFETY: a new block, all of it but a byte at each end.
    unsafe { arena.zero(part(block, 1, size - 1)) };
    assert!(in_memory().unwrap() - before <= 4 * 4096);
    // One page in a hundred was written, then all: the first are few enough to be discarded.
    for (step, most) in [(100 * 4096, 4 * 4096), (4096, size)] {
        for offset in (0..size).step_by(step) {
            // SAFETY: a byte of the block.
            unsafe { block.base().add(offset).write(DIRT) };
        }
        // SAFETY: the whole block, which the test has.
        unsafe { arena.zero(block) };
        assert!(in_memory().unwrap() - before <= most, "{step}");
        assert!(all_are(bytes_of(block.base(), size), 0));
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn bytes_of(base: core::ptr::NonNull<u8>, size: usize) -> &'static [u8] {
    // SAFETY: committed bytes that the test has and does not write to meanwhile.
    unsafe { core::slice::from_raw_parts(base.as_ptr(), size) }
}
