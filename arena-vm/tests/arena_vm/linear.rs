//! Memory that only grows, at its end, as that of WebAssembly does: arenas take little of it, and others have parts of it
//! between theirs (design/arena-vm.md `.linear`, `.gaps`).

use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::catch_unwind;

use tripoint_arena_vm::mock::{Call, Failing, Linear, LinearMemory, Released};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Platform, Portable};
use tripoint_core::{Addr, Align, Arena, Block, Check, CheckLevel, Error, Event, EventHook, Lock, PoolId};

use crate::common::{Audited, GRAIN, assert_books, holds, small, write};
use crate::refused_addresses::{fill, free};

/// By how much the memory grows at least, as WebAssembly's.
const UNIT: usize = 64 << 10;

/// Linear memory of at most `size` bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    size: usize,
    used: AtomicUsize,
    released: Lock<Released>,
}

// SAFETY: one allocation, parts of which are passed to one caller each.
unsafe impl Send for Memory {}
// SAFETY: as above; what changes is atomic or locked.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(size: usize) -> Self {
        let base = Portable.reserve(size, UNIT).unwrap();
        Self { base, size, used: AtomicUsize::new(0), released: Lock::new(Released::new()) }
    }

    /// The bytes that it has grown by.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    /// Takes memory at the end, as others do, and writes to it.
    pub(crate) fn take(&self, size: usize) -> Option<Block> {
        let base = (&self).grow(size)?;
        // SAFETY: this caller's alone, and valid until the memory is dropped.
        let block = unsafe { Block::new(base, size) };
        write(block, 0xee);
        Some(block)
    }

    /// The bytes that were released, which are checked to be zero but for what says so.
    fn released(&self) -> usize {
        let released = self.released.lock();
        let mut end = 0;
        released
            .runs()
            .map(|(base, size)| {
                assert!(base.addr().get() > end, "runs are in order, and no two touch");
                end = base.addr().get() + size;
                // Under Miri the beginning has to do.
                let looked_at = if cfg!(miri) { size.min(4096) } else { size };
                // SAFETY: released memory is valid, and is not written while the lock is held.
                let rest = unsafe { Block::new(base.add(16), looked_at - 16) };
                assert!(holds(rest, 0), "what is released is zero");
                size
            })
            .sum()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: reserved in `new`, and all arenas on it are gone.
        unsafe { Portable.release(self.base, self.size, UNIT) }.unwrap();
    }
}

// SAFETY: each part is zeroed memory of one allocation, which is passed to one caller.
unsafe impl LinearMemory for &Memory {
    const UNIT: Align = Align::new(UNIT).unwrap();

    fn end(&self) -> Option<usize> {
        Some(self.base.addr().get() + self.used())
    }

    fn grow(&self, size: usize) -> Option<NonNull<u8>> {
        assert!(size > 0 && size.is_multiple_of(UNIT), "whole units");
        let more = |used: usize| used.checked_add(size).filter(|&used| used <= self.size);
        let used = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        // SAFETY: it is in the allocation.
        Some(unsafe { self.base.add(used) })
    }

    fn released(&self) -> &Lock<Released> {
        &self.released
    }
}

/// A platform on such memory that holds the arena to its duties, and fails on demand.
type Watched<'m> = Failing<Audited<Linear<&'m Memory>>>;

pub(crate) fn on(memory: &Memory) -> Watched<'_> {
    Failing::new(Audited::new(Linear::on(memory)))
}

/// What WebAssembly has by default.
pub(crate) fn growing() -> ArenaVmOptions {
    ArenaVmOptions { reserve: 1 << 30, reserve_floor: 0, ..Default::default() }
}

/// Memory for tests that use a part of it, and for those that use it up.
const LARGE: usize = if cfg!(miri) { 8 << 20 } else { 64 << 20 };
const SMALL: usize = if cfg!(miri) { 2 << 20 } else { 6 << 20 };

#[test]
fn an_arena_takes_little_until_it_needs_more() {
    let memory = Memory::new(LARGE);
    let platform = on(&memory);
    let arena = ArenaVm::create_on(&platform, growing()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(1024, pool).unwrap();
    write(block, 1);
    // 16 bytes a grain of the whole reserve; 16 pages of descriptors; a grain.
    let least = (1 << 30) / GRAIN * 16 + 16 * 4096 + GRAIN;
    assert_eq!((memory.used(), arena.reserved()), (least, least));
    // From then on a step of 1 MiB at a time, and more as it grows.
    let mut last = arena.reserved();
    let mut steps = Vec::new();
    while arena.reserved() < LARGE / 4 {
        arena.alloc_tracts(GRAIN, pool).unwrap();
        if arena.reserved() > last {
            steps.push(arena.reserved() - last);
            last = arena.reserved();
        }
    }
    assert_eq!(steps[0], 1 << 20);
    assert!(steps.is_sorted(), "{steps:?}");
    assert!(cfg!(miri) || steps.last() > Some(&(2 << 20)), "{steps:?}");
    assert_eq!(memory.used(), arena.reserved());
    assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
}

/// Allocates in turn with others, who take memory at the end as soon as the arena has grown.
fn between_others(arena: &impl Arena, memory: &Memory, pool: PoolId) -> (Vec<Block>, Vec<Block>) {
    let (mut ours, mut theirs, mut used) = (Vec::new(), Vec::new(), memory.used());
    while let Ok(block) = arena.alloc_tracts(GRAIN, pool) {
        write(block, ours.len() as u8);
        ours.push(block);
        if memory.used() > used {
            theirs.extend(memory.take(3 * UNIT));
            used = memory.used();
        }
    }
    (ours, theirs)
}

#[test]
fn what_others_take_between_stays_theirs_and_an_arena_goes_on_behind_it() {
    let memory = Memory::new(SMALL);
    let platform = on(&memory);
    let arena = ArenaVm::create_on(&platform, growing()).unwrap();
    let pool = arena.register().unwrap();
    let (range, provenance) = (arena.range(), arena.provenance());
    let (ours, theirs) = between_others(&arena, &memory, pool);
    assert!(theirs.len() > if cfg!(miri) { 1 } else { 3 }, "{} gaps", theirs.len());
    assert_eq!(arena.last_refusal().map(|refusal| refusal.call), Some("extend"));
    let theirs_size: usize = theirs.iter().map(|block| block.size()).sum();
    assert_eq!(arena.reserved(), memory.used() - theirs_size, "all that is not theirs");
    assert!(SMALL - memory.used() < 3 * UNIT && arena.reserved() - ours.len() * GRAIN < 8 * UNIT);
    assert_eq!((arena.range(), arena.provenance()), (range, provenance), "neither changes");
    for block in &theirs {
        assert!(holds(*block, 0xee));
        let (base, last) = (block.range().base(), Addr::new(block.range().limit().get() - 1));
        for addr in [base, last] {
            assert_eq!((arena.pool_of(addr), arena.segment_base(addr)), (None, None));
        }
        assert!(ours.iter().all(|our| !our.range().overlaps(block.range())));
    }
    for (block, count) in ours.iter().zip(0..) {
        assert!(holds(*block, count) && range.covers(block.range()));
        assert_eq!(arena.pool_of(block.range().base()), Some(pool));
        // All have the same provenance, whatever they lie behind.
        let moved = provenance.as_ptr().with_addr(block.range().base().get());
        // SAFETY: the block was written above, and the arena's provenance is that of all blocks.
        assert_eq!(unsafe { moved.read() }, count);
    }
    let mut runs = 0;
    let mut from = Addr::ZERO;
    while let Some(run) = arena.next_tracts(pool, from) {
        from = run.range().limit();
        runs += 1;
    }
    assert_eq!(runs, theirs.len() + usize::from(theirs.last().unwrap().range().limit() < from));
    let in_use = ours.len() * GRAIN;
    assert_books(&arena, in_use);
    free(&arena, pool, ours);
    assert_books(&arena, 0);
    // Nothing is joined over a gap: no block is as large as all that is free.
    assert_eq!(arena.alloc_tracts(in_use, pool), Err(Error::Limit));
    drop(arena);
    assert_eq!(memory.released(), memory.used() - theirs_size, "all but theirs");
}

#[test]
fn what_an_arena_releases_serves_the_next_and_memory_stays_as_large() {
    let memory = Memory::new(LARGE);
    let platform = on(&memory);
    let mut used = None;
    let count = if cfg!(miri) { 4 } else { 40 };
    for round in 0..3 {
        let arena = ArenaVm::create_on(&platform, growing()).unwrap();
        let pool = arena.register().unwrap();
        for _ in 0..count {
            let block = arena.alloc_tracts(GRAIN, pool).unwrap();
            assert!(holds(block, 0), "fresh memory is zero");
            write(block, 0x77);
        }
        assert_books(&arena, count * GRAIN);
        assert_eq!(*used.get_or_insert(memory.used()), memory.used(), "round {round}");
        drop(arena);
        assert_eq!(memory.released(), memory.used());
    }
}

#[test]
fn arenas_take_turns_in_one_memory() {
    let memory = Memory::new(LARGE);
    let platform = on(&memory);
    let arenas = [(); 3].map(|()| ArenaVm::create_on(&platform, growing()).unwrap());
    let pools = arenas.each_ref().map(|arena| arena.register().unwrap());
    let mut blocks: Vec<(usize, Block)> = Vec::new();
    for count in 0..if cfg!(miri) { 16 } else { 150 } {
        let which = count / 7 % 3;
        let block = arenas[which].alloc_tracts(2 * GRAIN, pools[which]).unwrap();
        assert!(blocks.iter().all(|(_, other)| !other.range().overlaps(block.range())));
        write(block, which as u8);
        blocks.push((which, block));
    }
    for &(which, block) in &blocks {
        assert!(holds(block, which as u8));
        for (index, arena) in arenas.iter().enumerate() {
            let owner = (index == which).then_some(pools[index]);
            assert_eq!(arena.pool_of(block.range().base()), owner, "ranges overlap, and owners do not");
        }
    }
    for (index, arena) in arenas.iter().enumerate() {
        let in_use = blocks.iter().filter(|(which, _)| *which == index).count() * 2 * GRAIN;
        assert_books(arena, in_use);
    }
    drop(arenas);
    assert_eq!(memory.released(), memory.used());
}

#[test]
fn limits_stay_limits() {
    let memory = Memory::new(SMALL);
    let platform = on(&memory);
    let options = ArenaVmOptions { commit_limit: 8 * GRAIN, ..growing() };
    let arena = ArenaVm::create_on(&platform, options).unwrap();
    let pool = arena.register().unwrap();
    let (blocks, refusal) = fill(&arena, pool);
    assert_eq!((blocks.len(), refusal), (7, Error::CommitLimit));
    assert_books(&arena, 7 * GRAIN);
    drop(arena);
    // The reserve, of which the table and descriptors are a part.
    let options = ArenaVmOptions { reserve: 1 << 20, ..growing() };
    let arena = ArenaVm::create_on(&platform, options).unwrap();
    let pool = arena.register().unwrap();
    let (blocks, refusal) = fill(&arena, pool);
    assert_eq!((blocks.len(), refusal), (14, Error::Limit));
    assert_eq!(arena.reserved(), 1 << 20);
    drop(arena);
    // A floor is taken at once, or refused.
    let options = ArenaVmOptions { reserve_floor: SMALL / 2, ..growing() };
    let arena = ArenaVm::create_on(&platform, options).unwrap();
    assert!(arena.reserved() >= SMALL / 2);
    drop(arena);
    let options = ArenaVmOptions { reserve_floor: SMALL + GRAIN, ..growing() };
    assert_eq!(ArenaVm::create_on(&platform, options).unwrap_err(), Error::Resource);
    assert_eq!(memory.released(), memory.used());
}

#[test]
fn the_table_needs_entries_for_a_gap_and_waits_until_it_has_them() {
    let memory = Memory::new(LARGE);
    let platform = on(&memory);
    let arena = ArenaVm::create_on(&platform, ArenaVmOptions { spare_share: 0, ..growing() }).unwrap();
    let pool = arena.register().unwrap();
    let first = arena.alloc_tracts(GRAIN, pool).unwrap();
    // What else is reserved: with 32 bits the table is smaller.
    let end = arena.range().base().get() + arena.reserved();
    let left = (end - first.range().limit().get()) / GRAIN;
    for _ in 0..left {
        arena.alloc_tracts(GRAIN, pool).unwrap();
    }
    // More grains than a page of table has entries for.
    let theirs = memory.take(if cfg!(miri) { 5 << 20 } else { 40 << 20 }).unwrap();
    if !cfg!(miri) {
        let limit = arena.sizes().committed + GRAIN;
        arena.set_commit_limit(limit).unwrap();
        assert_eq!(arena.alloc_tracts(GRAIN, pool), Err(Error::CommitLimit));
        assert_books(&arena, (1 + left) * GRAIN);
        assert_eq!(arena.reserved(), memory.used() - theirs.size(), "it is reserved once");
        let used = memory.used();
        assert_eq!(arena.alloc_tracts(GRAIN, pool), Err(Error::CommitLimit));
        assert_eq!(memory.used(), used);
        arena.set_commit_limit(usize::MAX).unwrap();
    }
    let second = arena.alloc_tracts(GRAIN, pool).unwrap();
    assert_eq!(second.range().base(), theirs.range().limit());
    assert_eq!(arena.pool_of(first.range().base()), Some(pool));
    assert_eq!(arena.pool_of(second.range().base()), Some(pool));
    assert_books(&arena, (2 + left) * GRAIN);
    // One that is dropped while it waits.
    memory.take(UNIT).unwrap();
    arena.set_commit_limit(arena.sizes().committed).unwrap();
    assert_eq!(arena.alloc_tracts(4 << 20, pool), Err(Error::CommitLimit));
    drop(arena);
    assert_eq!(memory.released(), memory.used() - theirs.size() - UNIT);
}

#[test]
fn an_extension_that_is_refused_changes_nothing() {
    for nth in 1..if cfg!(miri) { 2 } else { 6 } {
        let memory = Memory::new(SMALL);
        let platform = on(&memory);
        let arena = ArenaVm::create_on(&platform, growing()).unwrap();
        let pool = arena.register().unwrap();
        platform.fail(Call::Extend, nth);
        let (ours, _) = between_others(&arena, &memory, pool);
        assert_books(&arena, ours.len() * GRAIN);
        assert!(ours.iter().zip(0..).all(|(block, count)| holds(*block, count)));
        assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
    }
    let memory = Memory::new(SMALL);
    let platform = on(&memory);
    platform.fail_always(Call::ReserveWithRoom);
    assert_eq!(ArenaVm::create_on(&platform, growing()).unwrap_err(), Error::Resource);
    assert_eq!(memory.used(), 0);
}

#[test]
fn memory_that_is_paid_for_and_guards_are_as_elsewhere() {
    use tripoint_arena_vm::Prefault;
    let memory = Memory::new(LARGE);
    let platform = on(&memory);
    for options in [
        ArenaVmOptions { prefault: Prefault::Size(1 << 20), ..growing() },
        ArenaVmOptions { guard: true, ..growing() },
        ArenaVmOptions { grain: 4096, reserve: 16 << 20, ..growing() },
        ArenaVmOptions { grain: 1 << 20, ..growing() },
    ] {
        let arena = ArenaVm::create_on(&platform, options).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(1 << 20, pool).unwrap();
        memory.take(UNIT).unwrap();
        let other = arena.alloc_tracts(2 << 20, pool).unwrap();
        write(block, 1);
        write(other, 2);
        assert!(holds(block, 1));
        assert_books(&arena, 3 << 20);
    }
    // What no such memory has.
    for options in [
        ArenaVmOptions { lock: true, ..growing() },
        ArenaVmOptions { huge_pages: true, ..growing() },
        ArenaVmOptions { inherit_on_fork: false, ..growing() },
    ] {
        let refused = ArenaVm::create_on(&platform, options);
        let refused = refused.and_then(|arena| arena.alloc_tracts(1, arena.register()?).map(drop));
        assert_eq!(refused, Err(Error::Resource));
    }
}

/// Threads that need memory at once get all that there is, and others between them keep theirs.
#[test]
#[cfg(not(target_family = "wasm"))]
#[cfg_attr(miri, ignore = "slow")]
fn threads_and_others_share_one_memory() {
    for _ in 0..20 {
        let memory = Memory::new(4 * SMALL);
        let platform = on(&memory);
        let arena = ArenaVm::create_on(&platform, growing()).unwrap();
        let pool = arena.register().unwrap();
        let (count, theirs) = std::thread::scope(|scope| {
            let others = scope.spawn(|| (0..40).filter_map(|_| memory.take(2 * UNIT)).collect::<Vec<_>>());
            let threads = [(); 3].map(|()| {
                scope.spawn(|| {
                    let (blocks, refusal) = fill(&arena, pool);
                    assert_eq!(refusal, Error::Limit);
                    blocks.iter().for_each(|block| write(*block, 0x33));
                    blocks.len()
                })
            });
            let count: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            (count, others.join().unwrap())
        });
        assert!(theirs.iter().all(|block| holds(*block, 0xee)));
        assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
        assert_books(&arena, count * GRAIN);
        let theirs: usize = theirs.iter().map(|block| block.size()).sum();
        assert!(memory.used() - theirs - count * GRAIN < 12 * UNIT, "nearly all is used");
        drop(arena);
        assert_eq!(memory.released(), memory.used() - theirs);
    }
}

/// Small arenas, whose floor is all of them, are as on the portable platform.
#[test]
fn an_arena_that_is_all_floor_is_reserved_at_once() {
    let memory = Memory::new(LARGE);
    let platform = on(&memory);
    let arena = ArenaVm::create_on(&platform, small()).unwrap();
    assert_eq!((arena.reserved(), memory.used()), (4 << 20, 4 << 20));
    assert_eq!(platform.seen(Call::Extend), 0);
}

#[test]
fn what_is_no_whole_pages_is_not_reserved() {
    let memory = Memory::new(SMALL);
    let platform = Linear::on(&memory);
    for (size, align) in [(0, 4096), (1, 1), (4095, 4096), (4097, 4096)] {
        assert!(platform.reserve(size, align).is_err(), "{size} bytes at a multiple of {align}");
    }
    assert_eq!(memory.used(), 0);
    // A lesser alignment is that of pages, so what is left over is whole pages, too.
    let bases = [(); 3].map(|()| platform.reserve(4096, 1).unwrap());
    for base in bases {
        assert!(base.addr().get().is_multiple_of(4096));
        // SAFETY: reserved above, and released once; nothing uses it.
        unsafe { platform.release(base, 4096, 1) }.unwrap();
    }
    assert_eq!(memory.released(), memory.used());
}

struct PanicsAtTheEnd;

impl EventHook for PanicsAtTheEnd {
    fn event(&self, event: Event) {
        assert!(!matches!(event, Event::DestroyArena { .. }), "expected by the test");
    }
}

/// (design/arena-vm.md `.gaps`)
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic ends the process")]
fn a_hook_that_panics_at_the_end_leaves_others_their_memory() {
    static HOOK: PanicsAtTheEnd = PanicsAtTheEnd;
    let memory = Memory::new(SMALL);
    let platform = on(&memory);
    let options = ArenaVmOptions { event_hook: Some(&HOOK), ..growing() };
    let arena = ArenaVm::create_on(&platform, options).unwrap();
    let pool = arena.register().unwrap();
    let (ours, theirs) = between_others(&arena, &memory, pool);
    assert!(!theirs.is_empty());
    free(&arena, pool, ours);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(arena))).is_err());
    assert!(theirs.iter().all(|block| holds(*block, 0xee)));
    assert_eq!(memory.released(), 0, "what it had is lost");
}
