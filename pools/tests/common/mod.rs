//! What the tests of all pool classes share: memory, subjects, an oracle.

#![allow(dead_code, reason = "each test file uses its part")]

use core::alloc::Layout;
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use tripoint_core::{
    Addr, AddrRange, Arena, ArenaCounts, ArenaSizes, Block, Check, CheckError, CheckLevel, ClientArena,
    ClientArenaOptions, Describe, ManualPool, PoolClass, PoolId, PoolSizes, Result,
};
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Unit, UnitLayout, UnitOf};

/// The grain of the arenas here, in bytes.
pub(crate) const GRAIN: usize = 4096;

/// A grain of memory, aligned as one.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
pub(crate) struct Grain([MaybeUninit<u8>; GRAIN]);

/// Memory for an arena of exactly this many grains: one more holds its table.
pub(crate) fn memory(grains: usize) -> Vec<Grain> {
    vec![Grain([MaybeUninit::uninit(); GRAIN]); grains + 1]
}

/// An arena in the memory, with this grain.
pub(crate) fn arena_of_grain(memory: &mut [Grain], grain: usize) -> ClientArena<'_> {
    let size = size_of_val(memory);
    // SAFETY: grains are bytes without padding, borrowed exclusively meanwhile.
    let bytes = unsafe { core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), size) };
    let options = ClientArenaOptions { grain: Some(grain), ..ClientArenaOptions::default() };
    ClientArena::create(bytes, options).unwrap()
}

pub(crate) fn arena(memory: &mut [Grain]) -> ClientArena<'_> {
    arena_of_grain(memory, GRAIN)
}

/// An arena that says it has a smaller grain than it has.
#[derive(Debug)]
pub(crate) struct SmallGrain<'a>(pub(crate) &'a ClientArena<'a>, pub(crate) usize);

// SAFETY: a multiple of the true grain is one of the smaller grain too; all else is
// the true arena's.
unsafe impl Arena for SmallGrain<'_> {
    fn grain(&self) -> usize {
        self.1
    }

    fn range(&self) -> AddrRange {
        self.0.range()
    }

    fn register(&self) -> Result<PoolId> {
        self.0.register()
    }

    unsafe fn unregister(&self, pool: PoolId) {
        // SAFETY: the caller's duties are the true arena's.
        unsafe { self.0.unregister(pool) }
    }

    fn alloc_tracts(&self, size: usize, pool: PoolId) -> Result<Block> {
        self.0.alloc_tracts(size, pool)
    }

    unsafe fn free_tracts(&self, block: Block, pool: PoolId) {
        // SAFETY: the caller's duties are the true arena's.
        unsafe { self.0.free_tracts(block, pool) }
    }

    fn alloc_control(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.0.alloc_control(layout)
    }

    unsafe fn free_control(&self, descriptor: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's duties are the true arena's.
        unsafe { self.0.free_control(descriptor, layout) }
    }

    fn pool_of(&self, addr: Addr) -> Option<PoolId> {
        self.0.pool_of(addr)
    }

    fn sizes(&self) -> ArenaSizes {
        self.0.sizes()
    }

    fn counts(&self) -> &ArenaCounts {
        self.0.counts()
    }

    fn freeze(&self) {
        self.0.freeze();
    }

    fn thaw(&self) {
        self.0.thaw();
    }

    fn is_frozen(&self) -> bool {
        self.0.is_frozen()
    }
}

impl Check for SmallGrain<'_> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.0.check(level)
    }
}

impl Describe for SmallGrain<'_> {
    fn describe(&self, out: &mut dyn Write, depth: usize) -> core::fmt::Result {
        self.0.describe(out, depth)
    }
}

/// A pool class as the tests need it.
pub(crate) trait Subject: ManualPool {
    /// Shows all free memory.
    fn walk_free(&self, visit: &mut dyn FnMut(Block));
}

impl<A: Arena> Subject for Mvff<A> {
    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        Mvff::walk_free(self, visit);
    }
}

impl<A: Arena, U: Unit> Subject for Mfs<A, U> {
    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        Mfs::walk_free(self, visit);
    }
}

pub(crate) type TestArena<'m> = ClientArena<'m>;

pub(crate) fn mvff<'a>(arena: &'a TestArena<'a>) -> Mvff<&'a TestArena<'a>> {
    let options = MvffOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..MvffOptions::default() };
    Mvff::create(arena, options).unwrap()
}

pub(crate) fn mvff_giving_back<'a>(arena: &'a TestArena<'a>) -> Mvff<&'a TestArena<'a>> {
    let options = MvffOptions { extend_by: GRAIN, fill_size: 600, spare: 0 };
    Mvff::create(arena, options).unwrap()
}

const MFS_OPTIONS: MfsOptions = MfsOptions { extend_by: 2 * GRAIN, fill_size: 1000 };

pub(crate) fn mfs_of<'a>(arena: &'a TestArena<'a>) -> Mfs<&'a TestArena<'a>, UnitOf<[u64; 12]>> {
    Mfs::create(arena, UnitOf::new(), MFS_OPTIONS).unwrap()
}

pub(crate) fn mfs_layout<'a>(arena: &'a TestArena<'a>) -> Mfs<&'a TestArena<'a>, UnitLayout> {
    let unit = UnitLayout::new(Layout::from_size_align(192, 64).unwrap()).unwrap();
    Mfs::create(arena, unit, MFS_OPTIONS).unwrap()
}

/// A live object, or the rest of a fill (which has no layout).
struct Live {
    block: Block,
    layout: Option<Layout>,
    seed: u8,
}

/// Every live byte of a pool, by address, each object with its pattern.
#[derive(Default)]
pub(crate) struct Oracle {
    live: BTreeMap<usize, Live>,
    seed: u8,
}

impl Oracle {
    pub(crate) fn addresses(&self, objects: bool) -> Vec<usize> {
        let kind = |live: &Live| live.layout.is_some() == objects;
        self.live.iter().filter(|(_, live)| kind(live)).map(|(&addr, _)| addr).collect()
    }

    /// Notes memory the pool gave out: it must overlap nothing, and lie in tracts
    /// of the pool.
    fn add<P: PoolClass>(&mut self, pool: &P, block: Block, layout: Option<Layout>) {
        let range = block.range();
        let arena = pool.header().arena();
        let last = Addr::new(range.limit().get() - 1);
        for addr in [range.base(), last] {
            assert_eq!(arena.pool_of(addr), Some(pool.header().id()), "inside the pool");
        }
        self.assert_apart(block);
        self.seed = self.seed.wrapping_add(1);
        // SAFETY: the pool gave the block out and nobody else has it.
        unsafe { block.base().write_bytes(self.seed, block.size()) };
        self.live.insert(range.base().get(), Live { block, layout, seed: self.seed });
    }

    pub(crate) fn assert_apart(&self, block: Block) {
        let range = block.range();
        let below = self.live.range(..range.limit().get()).next_back();
        assert!(below.is_none_or(|(_, live)| !live.block.range().overlaps(range)), "{block:?} is live");
    }

    /// The bytes in objects and in rests of fills.
    pub(crate) fn live_size(&self) -> usize {
        self.live.values().map(|live| live.block.size()).sum()
    }

    fn remove(&mut self, addr: usize) -> Live {
        let live = self.live.remove(&addr).unwrap();
        let block = live.block;
        // SAFETY: live memory that `add` wrote whole.
        let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
        assert!(bytes.iter().all(|&byte| byte == live.seed), "{block:?} keeps its contents");
        live
    }

    pub(crate) fn alloc<P: Subject>(&mut self, pool: &P, layout: Layout) -> Result<NonNull<u8>> {
        let object = pool.alloc(layout)?;
        let size = pool.reserve_size(layout).unwrap();
        assert!(size >= layout.size().max(1) && size.is_multiple_of(pool.min_align()));
        assert!(object.addr().get().is_multiple_of(layout.align().max(pool.min_align())));
        // SAFETY: allocated just now, and so large.
        self.add(pool, unsafe { Block::new(object, size) }, Some(layout));
        Ok(object)
    }

    pub(crate) fn free<P: Subject>(&mut self, pool: &P, addr: usize) {
        let live = self.remove(addr);
        // SAFETY: allocated from this pool with this layout, and out of the oracle.
        unsafe { pool.free(live.block.base(), live.layout.unwrap()) };
    }

    /// Fills, allocates up to `objects` objects in the fill as a buffer would, and
    /// keeps the rest as a buffer does.
    pub(crate) fn fill<P: Subject>(&mut self, pool: &P, layout: Layout, objects: usize) -> Result<Block> {
        let fill = pool.fill(layout)?;
        assert_eq!(fill.preallocated, 0);
        let (size, min_align) = (pool.reserve_size(layout).unwrap(), pool.min_align());
        assert!(fill.block.size() >= size && fill.block.size().is_multiple_of(min_align));
        assert!(fill.block.base().addr().get().is_multiple_of(layout.align().max(min_align)));
        // Above the pool's alignment a buffer pads; here the first object is enough.
        let objects = if layout.align() > min_align { objects.min(1) } else { objects };
        let mut rest = fill.block;
        for _ in 0..objects {
            let Some((object, after)) = rest.split_at(size) else { break };
            self.add(pool, object, Some(layout));
            rest = after;
        }
        if rest.size() == 0 {
            // SAFETY: the end of a fill; of size zero it must do nothing.
            unsafe { pool.empty(rest) };
        } else {
            self.add(pool, rest, None);
        }
        Ok(fill.block)
    }

    pub(crate) fn empty<P: Subject>(&mut self, pool: &P, addr: usize) {
        let rest = self.remove(addr);
        assert!(rest.layout.is_none());
        // SAFETY: the end of a fill that nobody allocated in.
        unsafe { pool.empty(rest.block) };
    }

    pub(crate) fn clear<P: Subject>(&mut self, pool: &P) {
        for addr in self.addresses(true) {
            self.free(pool, addr);
        }
        for addr in self.addresses(false) {
            self.empty(pool, addr);
        }
    }

    /// Checks the pool against what is live; gives its sizes.
    pub(crate) fn agree<P: Subject>(&self, pool: &P) -> PoolSizes {
        pool.check(CheckLevel::Deep).unwrap();
        let sizes = pool.sizes();
        let mut free = 0;
        pool.walk_free(&mut |block| {
            self.assert_apart(block);
            free += block.size();
        });
        let live = self.live_size();
        assert_eq!(free, sizes.free);
        assert!(live + free <= sizes.total && sizes.total <= sizes.high_water);
        assert!(sizes.largest_free <= free && (free == 0) == (sizes.largest_free == 0));
        sizes
    }
}
