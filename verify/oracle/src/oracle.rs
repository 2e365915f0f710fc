//! What is live in a pool, known byte for byte independently of the pool.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Addr, Arena, Block, CheckLevel, Control, Magazine, ManualPool, PoolClass, PoolSizes, Result, Use, walk,
};

use crate::live::{Live, Object};

/// Every live byte of one pool, by address, each object with its content. It does
/// with the pool what clients and buffers do, and checks the results.
///
/// All its panics are findings: memory that overlaps, is not aligned, is not the
/// pool's, has not kept its contents, or is counted wrongly.
#[derive(Debug, Default)]
pub struct Oracle {
    live: Live,
    /// The bytes allocated in points that have been dropped
    /// ([`Oracle::point`]).
    in_points: u64,
}

impl Oracle {
    /// What is live.
    #[must_use]
    pub const fn live(&self) -> &Live {
        &self.live
    }

    /// The same, to change.
    pub(crate) const fn live_mut(&mut self) -> &mut Live {
        &mut self.live
    }

    /// Where the objects are, or the rests of fills, lowest first.
    #[must_use]
    pub fn addresses(&self, objects: bool) -> Vec<usize> {
        self.live.addresses(objects).collect()
    }

    /// The bytes in objects and in rests of fills.
    #[must_use]
    pub const fn live_size(&self) -> usize {
        self.live.size()
    }

    /// The bytes of the live object here.
    #[must_use]
    pub fn size_of(&self, addr: usize) -> usize {
        self.live.get(addr).unwrap().block.size()
    }

    /// The bytes allocated by [`Oracle::point`] so far.
    pub(crate) const fn in_points(&self) -> u64 {
        self.in_points
    }

    /// The bytes that are neither live nor free: what the class itself takes.
    pub fn slack<P: PoolClass>(&self, pool: &P) -> usize {
        let sizes = pool.sizes();
        sizes.total - sizes.free - self.live_size()
    }

    /// Allocates an object.
    ///
    /// # Errors
    /// The pool's.
    pub fn alloc<P: ManualPool>(&mut self, pool: &P, layout: Layout) -> Result<NonNull<u8>> {
        let object = pool.alloc(layout)?;
        let size = pool.reserve_size(layout).unwrap();
        let is_whole = size >= layout.size().max(1) && size.is_multiple_of(pool.min_align());
        assert!(is_whole, "a reserve size of {size} for {layout:?}, in steps of {}", pool.min_align());
        // SAFETY: allocated just now, with this size.
        self.add(pool, unsafe { Block::new(object, size) }, Some(layout));
        Ok(object)
    }

    /// Frees the object here.
    pub fn free<P: ManualPool>(&mut self, pool: &P, addr: usize) {
        let object = self.remove(addr);
        assert_inside(pool, object.block);
        // SAFETY: allocated from this pool with this layout, and out of the oracle.
        unsafe { pool.free(object.block.base(), object.layout.unwrap()) };
    }

    /// Allocates up to `most` objects together. If none is free, there is none.
    pub fn alloc_many<P: ManualPool>(&mut self, pool: &P, layout: Layout, most: usize) {
        let mut magazine = Magazine::up_to(most);
        pool.alloc_many(layout, &mut magazine);
        assert!(magazine.is_empty() || pool.reserve_size(layout).is_some(), "{layout:?} is not served");
        while let Some(object) = magazine.pop() {
            // SAFETY: allocated just now, with this size.
            let block = unsafe { Block::new(object, pool.reserve_size(layout).unwrap()) };
            self.add(pool, block, Some(layout));
        }
    }

    /// Frees the object here, and those of its layout that follow, up to `most`, together.
    pub fn free_many<P: ManualPool>(&mut self, pool: &P, addr: usize, most: usize) {
        let layout = self.live.get(addr).unwrap().layout.unwrap();
        let alike = |addr: &usize| self.live.get(*addr).unwrap().layout == Some(layout);
        let addresses: Vec<_> = self.live.addresses(true).filter(|&at| at >= addr).filter(alike).collect();
        let mut magazine = Magazine::up_to(most);
        // Every second one first, so that they do not come in order.
        let (even, odd) = (addresses.iter().step_by(2), addresses.iter().skip(1).step_by(2));
        for addr in even.chain(odd).take(magazine.room()) {
            let object = self.remove(*addr);
            assert_inside(pool, object.block);
            magazine.push(object.block.base()).unwrap();
        }
        // SAFETY: each was allocated from this pool with this layout, and is out of the oracle.
        unsafe { pool.free_many(layout, &mut magazine) };
        assert!(magazine.is_empty(), "{} objects were not freed", magazine.len());
    }

    /// Resizes the object here, if the pool does that where it lies. Returns whether it did.
    pub fn resize<P: ManualPool>(&mut self, pool: &P, addr: usize, size: usize) -> bool {
        let (object, from) =
            self.live.get(addr).map(|live| (live.block.base(), live.layout.unwrap())).unwrap();
        let Ok(to) = Layout::from_size_align(size, from.align()) else { return false };
        // SAFETY: allocated from this pool with this layout, and not freed.
        let Some(resized) = (unsafe { pool.resize_room(object, from, to) }) else {
            assert!(!pool.resizes_in_place(from, to), "{from:?} was not resized in place to {to:?}");
            return false;
        };
        assert_eq!(resized, object, "it is resized where it lies");
        // SAFETY: the pool resized the object, which has this room now.
        let block = unsafe { Block::new(resized, pool.reserve_size(to).unwrap()) };
        assert_given(pool, block, to.align());
        // SAFETY: the pool resized the object to this layout, and nothing else has it.
        unsafe { self.live.resize(block, to) };
        true
    }

    /// Fills, allocates up to `objects` objects in the fill as a buffer would, and
    /// keeps the rest as a buffer does.
    ///
    /// # Errors
    /// The pool's.
    pub fn fill<P: PoolClass>(&mut self, pool: &P, layout: Layout, objects: usize) -> Result<Block> {
        let (size, min_align) = (pool.reserve_size(layout).unwrap(), pool.min_align());
        let fill = pool.fill(Layout::from_size_align(size, layout.align()).unwrap())?;
        let (preallocated, mut rest) = fill.block.split_at(fill.preallocated).unwrap();
        if preallocated.size() != 0 {
            self.add(pool, preallocated, Some(layout));
        }
        let is_whole = rest.size() >= size && rest.limit().addr().get().is_multiple_of(min_align);
        assert!(is_whole, "a fill of {rest:?} for {layout:?}, which takes {size} bytes");
        let is_aligned = rest.base().addr().get().is_multiple_of(layout.align().max(min_align));
        assert!(is_aligned, "a fill of {rest:?} for {layout:?}, in steps of {min_align}");
        // A buffer takes a new fill if the next object would not be aligned.
        let objects = if layout.align() > min_align { objects.min(1) } else { objects };
        for _ in 0..objects {
            let Some((object, after)) = rest.split_at(size) else { break };
            self.add(pool, object, Some(layout));
            rest = after;
        }
        if rest.size() == 0 {
            // SAFETY: the end of a fill; if its size is zero, the pool must do
            // nothing.
            unsafe { pool.empty(rest) };
        } else {
            self.add(pool, rest, None);
        }
        Ok(fill.block)
    }

    /// Returns the rest of a fill here.
    pub fn empty<P: PoolClass>(&mut self, pool: &P, addr: usize) {
        let rest = self.remove(addr);
        assert!(rest.layout.is_none(), "{rest:?} is no rest of a fill");
        assert_inside(pool, rest.block);
        // SAFETY: the end of a fill in which nothing was allocated.
        unsafe { pool.empty(rest.block) };
    }

    /// Allocates objects in an allocation point of their own.
    ///
    /// Once the point is empty, what it was filled with, less what it returned, is
    /// what it allocated, however it ended (design/conformance.md `.req.identity`).
    ///
    /// # Errors
    /// The pool's, or those of creating the point.
    pub fn point<P: PoolClass>(&mut self, pool: &P, layout: Layout, objects: usize) -> Result<()> {
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
        let kept = point.buffer().fill_size() - point.buffer().empty_size();
        assert_eq!(kept, allocated, "filled and not emptied by the buffer, against allocated");
        assert_eq!(balance() - balance_before, allocated, "the same as the arena counts it");
        let counted = counts.alloc_mutator.get().wrapping_sub(allocated_before);
        assert_eq!(counted, allocated, "allocated as the arena counts it");
        self.in_points += allocated;
        outcome
    }

    /// Allocates an object in an allocation point.
    ///
    /// # Errors
    /// The pool's.
    pub fn reserve_and_commit<P: PoolClass, C: Control>(
        &mut self,
        point: &mut AllocationPoint<'_, P, C>,
        layout: Layout,
    ) -> Result<Block> {
        let pool = point.pool();
        let reservation = point.reserve(layout)?;
        // SAFETY: reserved just now, with this size.
        let object = unsafe { Block::new(reservation.as_ptr(), reservation.size() + P::SEAL_SIZE) };
        self.add(pool, object, Some(layout));
        // SAFETY: `add` wrote the object.
        unsafe { reservation.commit() }.unwrap();
        Ok(object)
    }

    /// Frees and empties all there is.
    pub fn clear<P: ManualPool>(&mut self, pool: &P) {
        for addr in self.addresses(true) {
            self.free(pool, addr);
        }
        self.clear_rests(pool);
    }

    /// Empties the rests of fills.
    pub fn clear_rests<P: PoolClass>(&mut self, pool: &P) {
        for addr in self.addresses(false) {
            self.empty(pool, addr);
        }
    }

    /// Checks the pool against what is live, and returns its sizes.
    ///
    /// A walk shows every byte of the pool once, and none that is live as free
    /// (design/conformance.md `.req.walk`).
    pub fn agree<P: PoolClass>(&self, pool: &P) -> PoolSizes {
        pool.check(CheckLevel::Deep).unwrap();
        let sizes = pool.sizes();
        let (mut shown, mut free, mut from) = (0, 0, Addr::ZERO);
        walk(pool, |block, shown_as| {
            let range = block.range();
            assert!(from <= range.base() && !range.is_empty(), "{range} was shown after {from}");
            from = range.limit();
            shown += block.size();
            if shown_as == Use::Free {
                self.live.assert_apart(range);
                free += block.size();
            }
        });
        assert_eq!((shown, free), (sizes.total, sizes.free), "bytes that a walk shows, and shows as free");
        assert!(self.live_size() + free <= sizes.total, "{} bytes are live: {sizes:?}", self.live_size());
        assert!(sizes.total <= sizes.high_water && sizes.largest_free <= free, "{sizes:?}");
        sizes
    }

    /// Forgets what is live here, which has to have kept its contents.
    pub fn remove(&mut self, addr: usize) -> Object {
        self.live.remove(addr)
    }

    /// Notes memory that the pool handed out: it is aligned as asked, overlaps
    /// nothing, and lies in tracts of the pool.
    fn add<P: PoolClass>(&mut self, pool: &P, block: Block, layout: Option<Layout>) {
        assert_given(pool, block, layout.map_or(1, |layout| layout.align()));
        // What a client may write to: an object's own bytes, not all that it takes.
        let written = layout.map_or(block.size(), |layout| layout.size());
        // SAFETY: the pool handed out the block, and nothing else has it.
        unsafe { self.live.insert(block, layout, written) };
    }
}

/// Checks that a block that a pool handed out is aligned, and lies in tracts of
/// the pool.
pub(crate) fn assert_given<P: PoolClass>(pool: &P, block: Block, align: usize) {
    let align = align.max(pool.min_align());
    assert!(block.base().addr().get().is_multiple_of(align), "{block:?} is not aligned to {align}");
    assert_inside(pool, block);
}

fn assert_inside<P: PoolClass>(pool: &P, block: Block) {
    let (header, range) = (pool.header(), block.range());
    let last = Addr::new(range.limit().get() - 1);
    for addr in [range.base(), last] {
        assert_eq!(header.arena().pool_of(addr), Some(header.id()), "{addr} of {block:?} is not in the pool");
    }
}
