//! A pool class of your own: memory that starts over when its last object dies, for batches
//! of work that come and go as a whole.
//!
//! The class keeps one extent. Allocating moves a mark upwards; freeing only counts; when
//! nothing is live any more the mark goes back to the base. Allocation points, boxes, walks
//! and `Exhausted` work with it as with any other class (design/pool-null.md `.req.template`).
//!
//!     cargo run --example 10_own_pool_class

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint::author::{Align, Block, Lock, ManualClass, PoolHeader, ensure, line};
use tripoint::{
    Addr, AllocationPoint, Arena, Check, CheckError, CheckLevel, ClientArena, ClientArenaOptions, Describe,
    Error, Exhausted, PoolSizes, Result, Store,
};

/// Every object is aligned to this and takes a multiple of it, in bytes.
const GRANULE: Align = Align::new(16).unwrap();
/// What a buffer gets at a time, in bytes, unless an object needs more.
const FILL_SIZE: usize = 1024;

/// Memory that starts over when its last object dies.
#[derive(Debug)]
struct Batches<A: Arena> {
    state: Lock<State>,
    header: PoolHeader<A>,
}

/// Invariant: `live <= mark <= extent.size()`; what is live lies below the mark.
#[derive(Debug)]
struct State {
    extent: Block,
    /// Bytes from the extent's base that were given out.
    mark: usize,
    /// Bytes given out and not returned.
    live: usize,
}

impl<A: Arena> Batches<A> {
    /// A pool that takes `size` bytes from the arena at once, and never more.
    fn create(arena: A, size: usize) -> Result<Self> {
        let header = PoolHeader::create(arena, Self::CLASS)?;
        let extent = header.extend(size)?;
        Ok(Self { state: Lock::new(State { extent, mark: 0, live: 0 }), header })
    }

    /// Takes room for `layout`, and as much more as there is, up to `most` bytes.
    fn take(&self, layout: Layout, most: usize) -> Result<Block> {
        let (size, align) = (self.reserve_size(layout).ok_or(Error::Limit)?, Align::of_layout(layout));
        self.state.lock().take(size, size.max(most), align.max(GRANULE)).ok_or(Error::Limit)
    }
}

impl State {
    fn free(&self) -> Block {
        self.extent.split_at(self.mark).map_or(self.extent, |(_, free)| free)
    }

    /// Takes `min..=max` bytes above the mark.
    fn take(&mut self, min: usize, max: usize, align: Align) -> Option<Block> {
        let base = self.free().range().base();
        let (_, room) = self.free().split_at(base.align_up(align)?.get() - base.get())?;
        let (taken, rest) = room.split_at(room.size().min(max)).filter(|(taken, _)| taken.size() >= min)?;
        self.mark = self.extent.size() - rest.size();
        self.live += taken.size();
        Some(taken)
    }

    fn put_back(&mut self, size: usize) {
        self.live -= size;
        self.mark = if self.live == 0 { 0 } else { self.mark };
    }
}

// SAFETY: blocks are given out from the mark upwards, and the mark goes back only when all of
// them were returned. They are aligned as asked and to granules, in base and size; a granule is
// a constant, and sizes depend on the layout alone.
unsafe impl<A: Arena> ManualClass for Batches<A> {
    const CLASS: &'static str = "Batches";
    type Arena = A;

    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    fn min_align(&self) -> usize {
        GRANULE.get()
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        GRANULE.round_up(layout.size().max(1)).filter(|&size| size <= isize::MAX as usize)
    }

    fn fill(&self, layout: Layout) -> Result<Block> {
        self.take(layout, FILL_SIZE)
    }

    unsafe fn empty(&self, unused: Block) {
        self.state.lock().put_back(unused.size());
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        Some(self.state.lock().free()).filter(|free| free.size() != 0).into_iter().for_each(visit);
    }

    fn sizes(&self) -> PoolSizes {
        let free = self.state.lock().free().size();
        PoolSizes::of(&self.header, free, free)
    }
}

// SAFETY: memory from `alloc` is taken as fills are, behind a lock. Freeing counts bytes and follows
// no pointer.
unsafe impl<A: Arena> Store for Batches<A> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.take(layout, 0).map(Block::base)
    }

    unsafe fn free(&self, _object: NonNull<u8>, layout: Layout) {
        self.state.lock().put_back(self.reserve_size(layout).unwrap_or(0));
    }
}

impl<A: Arena> Check for Batches<A> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)?;
        let state = self.state.lock();
        ensure(Self::CLASS, state.live <= state.mark, "what is live lies below the mark")?;
        ensure(Self::CLASS, state.mark <= state.extent.size(), "the mark lies in the extent")
    }
}

impl<A: Arena> Describe for Batches<A> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)?;
        let State { mark, live, .. } = *self.state.lock();
        line(out, depth + 1, "live", format_args!("{live} bytes below the mark at {mark}"))
    }
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut memory = vec![core::mem::MaybeUninit::uninit(); 256 << 10];
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    let pool = Batches::create(&arena, 64 << 10)?;
    let base = pool.state.lock().extent.range().base();

    let mut point = AllocationPoint::create(&pool)?;
    for batch in 0..3_u64 {
        let jobs = (0..100).map(|job| point.boxed([batch, job, 0, 0])).collect::<Result<Vec<_>>>()?;
        assert_eq!(Addr::of(&raw const *jobs[0]), base, "each batch starts over");
        point.empty();
        pool.check(CheckLevel::Deep)?;
    }
    assert_eq!(pool.sizes().free, pool.sizes().total);

    // A batch that is too large: an ordinary result, and the pool stays usable.
    let layout = Layout::new::<[u8; 100 << 10]>();
    println!("{}", Exhausted::of(&pool, layout, pool.alloc(layout).unwrap_err()));
    Ok(())
}
