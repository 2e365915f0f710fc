//! What is live in a pool, known byte for byte by somebody else than the pool.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Addr, Arena, Block, Check, CheckLevel, ManualPool, PoolClass, PoolSizes, Result, Use, walk,
};

/// A live object, or the rest of a fill (which has no layout).
pub(crate) struct Live {
    block: Block,
    layout: Option<Layout>,
    seed: u8,
}

impl Live {
    /// The bytes a client may write to: an object's own, not all that it takes.
    fn own_size(&self) -> usize {
        self.layout.map_or(self.block.size(), |layout| layout.size().min(self.block.size()))
    }
}

/// Every live byte of a pool, by address, each object with its pattern.
#[derive(Default)]
pub(crate) struct Oracle {
    live: BTreeMap<usize, Live>,
    seed: u8,
}

impl Oracle {
    /// Where the objects are, or the rests of fills, lowest first.
    pub(crate) fn addresses(&self, objects: bool) -> Vec<usize> {
        let kind = |live: &Live| live.layout.is_some() == objects;
        self.live.iter().filter(|(_, live)| kind(live)).map(|(&addr, _)| addr).collect()
    }

    /// The bytes in objects and in rests of fills.
    pub(crate) fn live_size(&self) -> usize {
        self.live.values().map(|live| live.block.size()).sum()
    }

    /// The bytes of the live object here.
    pub(crate) fn size_of(&self, addr: usize) -> usize {
        self.live[&addr].block.size()
    }

    /// The bytes that are neither live nor free: what the class itself takes.
    pub(crate) fn slack<P: PoolClass>(&self, pool: &P) -> usize {
        let sizes = pool.sizes();
        sizes.total - sizes.free - self.live_size()
    }

    pub(crate) fn alloc<P: ManualPool>(&mut self, pool: &P, layout: Layout) -> Result<NonNull<u8>> {
        let object = pool.alloc(layout)?;
        let size = pool.reserve_size(layout).unwrap();
        assert!(size >= layout.size().max(1) && size.is_multiple_of(pool.min_align()));
        // SAFETY: allocated just now, and so large.
        self.add(pool, unsafe { Block::new(object, size) }, Some(layout));
        Ok(object)
    }

    pub(crate) fn free<P: ManualPool>(&mut self, pool: &P, addr: usize) {
        let live = self.remove(addr);
        // SAFETY: allocated from this pool with this layout, and out of the oracle.
        unsafe { pool.free(live.block.base(), live.layout.unwrap()) };
    }

    /// Fills, allocates up to `objects` objects in the fill as a buffer would, and
    /// keeps the rest as a buffer does.
    pub(crate) fn fill<P: PoolClass>(&mut self, pool: &P, layout: Layout, objects: usize) -> Result<Block> {
        let (size, min_align) = (pool.reserve_size(layout).unwrap(), pool.min_align());
        let fill = pool.fill(Layout::from_size_align(size, layout.align()).unwrap())?;
        let (preallocated, mut rest) = fill.block.split_at(fill.preallocated).unwrap();
        if preallocated.size() != 0 {
            self.add(pool, preallocated, Some(layout));
        }
        assert!(rest.size() >= size && rest.limit().addr().get().is_multiple_of(min_align));
        assert!(rest.base().addr().get().is_multiple_of(layout.align().max(min_align)));
        // A buffer takes a new fill where the next object would not be aligned.
        let objects = if layout.align() > min_align { objects.min(1) } else { objects };
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

    pub(crate) fn empty<P: PoolClass>(&mut self, pool: &P, addr: usize) {
        let rest = self.remove(addr);
        assert!(rest.layout.is_none());
        // SAFETY: the end of a fill that nobody allocated in.
        unsafe { pool.empty(rest.block) };
    }

    /// Allocates objects in an allocation point of their own.
    ///
    /// Once the point is empty, what it was filled with less what it gave back is what
    /// it allocated, however it ended (design/conformance.md `.req.identity`).
    pub(crate) fn point<P: PoolClass>(&mut self, pool: &P, layout: Layout, objects: usize) -> Result<()> {
        let counts = pool.header().arena().counts();
        let balance = || counts.fill_mutator.get() - counts.empty_mutator.get();
        let (balance_before, allocated_before) = (balance(), counts.alloc_mutator.get());

        let mut point = AllocationPoint::create(pool)?;
        let mut allocated = 0;
        let outcome = (0..objects).try_for_each(|_| {
            let object = self.reserve_and_commit(&mut point, layout)?;
            allocated += object.size() as u64;
            Ok(())
        });
        point.empty();
        assert_eq!(point.buffer().fill_size() - point.buffer().empty_size(), allocated);
        assert_eq!(balance() - balance_before, allocated);
        assert_eq!(counts.alloc_mutator.get().wrapping_sub(allocated_before), allocated);
        outcome
    }

    /// Allocates an object in an allocation point.
    pub(crate) fn reserve_and_commit<P: PoolClass>(
        &mut self,
        point: &mut AllocationPoint<'_, P>,
        layout: Layout,
    ) -> Result<Block> {
        let pool = point.pool();
        let reservation = point.reserve(layout)?;
        // SAFETY: reserved just now, and so large.
        let object = unsafe { Block::new(reservation.as_ptr(), reservation.size()) };
        self.add(pool, object, Some(layout));
        // SAFETY: `add` wrote the whole object.
        unsafe { reservation.commit() }.unwrap();
        Ok(object)
    }

    /// Frees and empties all there is.
    pub(crate) fn clear<P: ManualPool>(&mut self, pool: &P) {
        for addr in self.addresses(true) {
            self.free(pool, addr);
        }
        self.clear_rests(pool);
    }

    /// Empties the rests of fills.
    pub(crate) fn clear_rests<P: PoolClass>(&mut self, pool: &P) {
        for addr in self.addresses(false) {
            self.empty(pool, addr);
        }
    }

    /// Checks the pool against what is live; gives its sizes.
    ///
    /// A walk shows every byte of the pool once, and none that is live as free
    /// (design/conformance.md `.req.walk`).
    pub(crate) fn agree<P: PoolClass>(&self, pool: &P) -> PoolSizes {
        pool.check(CheckLevel::Deep).unwrap();
        let sizes = pool.sizes();
        let (mut shown, mut free, mut from) = (0, 0, Addr::ZERO);
        walk(pool, |block, shown_as| {
            let range = block.range();
            assert!(from <= range.base() && !range.is_empty(), "in the order of addresses");
            from = range.limit();
            shown += block.size();
            if shown_as == Use::Free {
                self.assert_apart(block);
                free += block.size();
            }
        });
        assert_eq!((shown, free), (sizes.total, sizes.free));
        assert!(self.live_size() + free <= sizes.total && sizes.total <= sizes.high_water);
        assert!(sizes.largest_free <= free);
        sizes
    }

    /// Notes memory the pool gave out: it is aligned as asked, overlaps nothing, and
    /// lies in tracts of the pool.
    fn add<P: PoolClass>(&mut self, pool: &P, block: Block, layout: Option<Layout>) {
        let range = block.range();
        let align = layout.map_or(1, |layout| layout.align()).max(pool.min_align());
        assert!(range.base().get().is_multiple_of(align));
        let arena = pool.header().arena();
        let last = Addr::new(range.limit().get() - 1);
        for addr in [range.base(), last] {
            assert_eq!(arena.pool_of(addr), Some(pool.header().id()), "inside the pool");
        }
        self.assert_apart(block);
        self.seed = self.seed.wrapping_add(1);
        let live = Live { block, layout, seed: self.seed };
        // SAFETY: the pool gave the block out and nobody else has it.
        unsafe { block.base().write_bytes(self.seed, live.own_size()) };
        self.live.insert(range.base().get(), live);
    }

    fn assert_apart(&self, block: Block) {
        let range = block.range();
        let below = self.live.range(..range.limit().get()).next_back();
        assert!(below.is_none_or(|(_, live)| !live.block.range().overlaps(range)), "{block:?} is live");
    }

    /// Forgets what is live here, which has to be as it was.
    pub(crate) fn remove(&mut self, addr: usize) -> Live {
        let live = self.live.remove(&addr).unwrap();
        let block = live.block;
        // SAFETY: live memory that `add` wrote whole.
        let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), live.own_size()) };
        // Compared as a whole: bytes one by one are slow where nothing is optimised.
        assert!(bytes == vec![live.seed; bytes.len()], "{block:?} keeps its contents");
        live
    }
}
