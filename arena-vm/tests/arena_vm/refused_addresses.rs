//! Reservations that are refused at their full size: they grow, or have a share (design/arena-vm.md `.reserve`,
//! `.reserve.grow`).

use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::sync::Mutex;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Platform, PlatformError, Portable};
use tripoint_core::{Arena, Block, Check, CheckLevel, Error, PoolId};

use crate::common::{Audited, GRAIN, assert_books, do_nothing, holds, small, write};

/// The portable platform, with reservations that shrink and grow by account only.
#[derive(Debug, Default)]
pub(crate) struct Roomy(Mutex<BTreeMap<usize, (usize, usize)>>);

// SAFETY: memory is the portable platform's, which keeps these promises. What is returned or not reserved yet stays
// allocated until the release.
unsafe impl Platform for Roomy {
    fn name(&self) -> &'static str {
        "roomy"
    }

    fn page_size(&self) -> usize {
        Portable.page_size()
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        let base = Portable.reserve(size, align)?;
        self.0.lock().unwrap().insert(base.addr().get(), (size, size));
        Ok(base)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, align: usize) -> Result<(), PlatformError> {
        let (whole, now) = self.0.lock().unwrap().remove(&base.addr().get()).unwrap();
        assert_eq!(size, now);
        // SAFETY: the allocation was made with this size, and the caller keeps to the duties of this method.
        unsafe { Portable.release(base, whole, align) }
    }

    do_nothing!(commit decommit populate populate_in_use advise_huge_pages lock unlock no_inherit);

    fn reserve_with_room(
        &self,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<NonNull<u8>, PlatformError> {
        let base = Portable.reserve(room, align)?;
        self.0.lock().unwrap().insert(base.addr().get(), (room, size));
        Ok(base)
    }

    unsafe fn extend(
        &self,
        base: NonNull<u8>,
        size: usize,
        more: usize,
        _room: usize,
        _align: usize,
    ) -> Result<usize, PlatformError> {
        let mut reservations = self.0.lock().unwrap();
        let (whole, now) = reservations.get_mut(&base.addr().get()).unwrap();
        assert!(size == *now && size + more <= *whole, "{more} behind {size} of {now} of {whole}");
        *now += more;
        Ok(size)
    }
}

/// The most addresses that are granted.
pub(crate) const LIMIT: usize = 3 << 20;

/// Options that are refused at their full size if no more than [`LIMIT`] is granted.
pub(crate) fn refused() -> ArenaVmOptions {
    ArenaVmOptions { reserve: 8 << 20, reserve_floor: 256 << 10, ..small() }
}

/// Runs a test on a platform that grants reservations of at most [`LIMIT`] bytes, growth included.
pub(crate) fn on_limited(test: impl Fn(&Failing<&Audited<Roomy>>, &Audited<Roomy>)) {
    let audited = Audited::new(Roomy::default());
    let failing = Failing::new(&audited);
    failing.limit_reserve(LIMIT);
    test(&failing, &audited);
    assert_eq!(audited.reservations(), 0, "every reservation is released");
}

/// Allocates blocks of a grain until the arena refuses, and returns them with the refusal.
pub(crate) fn fill(arena: &impl Arena, pool: PoolId) -> (Vec<Block>, Error) {
    let mut blocks = Vec::new();
    loop {
        match arena.alloc_tracts(GRAIN, pool) {
            Ok(block) => blocks.push(block),
            Err(refusal) => return (blocks, refusal),
        }
    }
}

pub(crate) fn free(arena: &impl Arena, pool: PoolId, blocks: Vec<Block>) {
    for block in blocks {
        // SAFETY: the test allocated the block for this pool, frees it once, and does not use it any more.
        unsafe { arena.free_tracts(block, pool) };
    }
}

#[test]
fn an_arena_takes_addresses_as_it_needs_them_and_nearly_all_that_are_granted() {
    on_limited(|failing, _| {
        let arena = ArenaVm::create_on(failing, refused()).unwrap();
        let (range, provenance) = (arena.range(), arena.provenance());
        assert!(arena.reserved() <= LIMIT / 8, "{} at first", arena.reserved());
        let pool = arena.register().unwrap();
        let (blocks, refusal) = fill(&arena, pool);
        assert_eq!(refusal, Error::Limit);
        assert!(
            blocks.len() * GRAIN > LIMIT / 10 * 8 && arena.reserved() <= LIMIT,
            "{} blocks",
            blocks.len()
        );
        assert_eq!(arena.sizes().reserved, arena.reserved());
        assert_eq!((arena.range(), arena.provenance()), (range, provenance), "neither changes");
        for (block, byte) in blocks.iter().zip(0..) {
            assert!(range.covers(block.range()));
            write(*block, byte);
        }
        // All have the same provenance, whichever step they came with: neighbours may be joined.
        let last = provenance.as_ptr().with_addr(blocks.last().unwrap().range().base().get());
        // SAFETY: the block was written above, and the arena's provenance is that of all blocks.
        assert_eq!(usize::from(unsafe { last.read() }), blocks.len() - 1);
        // Under Miri some have to do.
        let mut looked_at = blocks.iter().zip(0..).step_by(if cfg!(miri) { 10 } else { 1 });
        assert!(looked_at.all(|(block, byte)| holds(*block, byte)));
        assert_books(&arena, blocks.len() * GRAIN);
        free(&arena, pool, blocks);
        arena.set_commit_limit(usize::MAX).unwrap();
        let over_all_steps = arena.alloc_tracts(LIMIT / 10 * 8, pool).unwrap();
        write(over_all_steps, 7);
        assert_eq!(arena.pool_of(over_all_steps.range().base()), Some(pool));
        assert_books(&arena, over_all_steps.size());
    });
}

#[test]
fn growth_that_is_refused_changes_nothing_and_spare_memory_still_serves() {
    on_limited(|failing, _| {
        let arena = ArenaVm::create_on(failing, ArenaVmOptions { spare_share: 100, ..refused() }).unwrap();
        let pool = arena.register().unwrap();
        failing.fail_always(Call::Extend);
        let (blocks, refusal) = fill(&arena, pool);
        let (count, reserved) = (blocks.len(), arena.reserved());
        assert!(refusal == Error::Limit && count > 0, "{refusal:?} after {count}");
        assert_eq!(arena.last_refusal().map(|refusal| refusal.call), Some("extend"));
        free(&arena, pool, blocks);
        let (blocks, _) = fill(&arena, pool);
        assert_eq!((blocks.len(), arena.reserved()), (count, reserved));
        failing.heal();
        failing.limit_reserve(LIMIT);
        // If a step is refused, what is needed is asked for.
        failing.fail(Call::Extend, 1);
        let more = arena.alloc_tracts(GRAIN, pool).unwrap();
        assert_eq!(arena.reserved(), reserved + GRAIN);
        assert_eq!(arena.pool_of(more.range().base()), Some(pool));
        assert_books(&arena, (count + 1) * GRAIN);
    });
}

#[test]
fn an_arena_that_cannot_grow_has_all_but_a_sixteenth() {
    on_limited(|failing, _| {
        failing.fail_always(Call::ReserveWithRoom);
        let reserved_within = |limit| {
            failing.limit_reserve(limit);
            ArenaVm::create_on(failing, refused()).map(|arena| arena.reserved())
        };
        let (wanted, floor) = (refused().reserve, refused().reserve_floor);
        for limit in (floor..wanted).step_by((1 << 20) + 12_345) {
            let before = failing.seen(Call::Reserve);
            let reserved = reserved_within(limit).unwrap();
            assert!(
                reserved <= (limit / 16 * 15).max(floor),
                "{limit}: {reserved} leaves less than a sixteenth"
            );
            assert!(reserved + 3 * GRAIN >= limit / 16 * 15, "{limit}: {reserved} is too little");
            let tried = failing.seen(Call::Reserve) - before;
            assert!(tried < 20, "{tried} reservations for one");
        }
        assert_eq!(reserved_within(2 * wanted), Ok(wanted), "what was asked for");
        assert_eq!(reserved_within(floor), Ok(floor), "the floor is taken whole");
        assert_eq!(reserved_within(floor - 1), Err(Error::Resource));
    });
}

/// Another thread may take addresses between the search and the reservation.
#[test]
fn if_what_was_found_is_gone_less_is_taken() {
    on_limited(|failing, _| {
        let reserved = || ArenaVm::create_on(failing, refused()).map(|arena| arena.reserved());
        failing.fail(Call::ReserveWithRoom, 1);
        let before = failing.seen(Call::Reserve);
        let share = reserved().unwrap();
        let last = failing.seen(Call::Reserve) - before;
        assert!(share > LIMIT / 8 * 7, "{share}");
        failing.fail(Call::ReserveWithRoom, 1);
        failing.fail(Call::Reserve, last);
        assert_eq!(reserved(), Ok(refused().reserve_floor));
    });
}

/// Threads that need addresses at once get all that there are, and none is refused before.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn threads_grow_one_arena_together() {
    on_limited(|failing, _| {
        let alone = {
            let arena = ArenaVm::create_on(failing, refused()).unwrap();
            fill(&arena, arena.register().unwrap()).0.len()
        };
        for _ in 0..20 {
            let arena = ArenaVm::create_on(failing, refused()).unwrap();
            let pool = arena.register().unwrap();
            let count: usize = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(|| fill(&arena, pool).0.len()));
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(count, alone);
            assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
        }
    });
}

/// The native platform, which gives the addresses back for real. In a child, where no other thread maps anything.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn what_others_map_behind_an_arena_stays_theirs() {
    let outcome = crate::child::in_child(|| {
        let failing = Failing::new(tripoint_arena_vm::Native::new());
        failing.limit_reserve(LIMIT);
        let arena = ArenaVm::create_on(&failing, refused()).unwrap();
        let place = arena.provenance().as_ptr().wrapping_add(LIMIT / 2);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new mapping, where nothing is.
        let theirs = unsafe { libc::mmap(place.cast(), 4096, access, flags, -1, 0) }.cast::<u8>();
        assert_eq!(theirs.addr(), place.addr(), "the addresses behind the arena are free");
        // SAFETY: mapped above, by this test alone.
        unsafe { theirs.write(42) };
        let pool = arena.register().unwrap();
        let (blocks, refusal) = fill(&arena, pool);
        assert_eq!(refusal, Error::Limit);
        let theirs_at = tripoint_core::Addr::of(theirs);
        assert!(blocks.len() > 10 && blocks.iter().all(|block| block.range().limit() <= theirs_at));
        assert_eq!((arena.pool_of(theirs_at), arena.segment_base(theirs_at)), (None, None));
        // SAFETY: mapped above, by this test alone; it is not used after it was unmapped.
        unsafe {
            assert_eq!(theirs.read(), 42);
            assert_eq!(libc::munmap(theirs.cast(), 4096), 0);
        }
        let (more, _) = fill(&arena, pool);
        assert!(more.len() > 10, "the addresses are free again, and {} more blocks are served", more.len());
        assert_books(&arena, (blocks.len() + more.len()) * GRAIN);
    });
    assert_eq!(outcome, Ok(0));
}
