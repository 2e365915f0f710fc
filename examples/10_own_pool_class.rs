//! A pool class of one's own, in two screens: memory that starts over when its last
//! object dies, for batches of work that come and go as a whole.
//!
//! The class keeps one extent. Allocating moves a mark upwards; freeing only counts;
//! when nothing is live any more the mark goes back to the base. It began as a copy
//! of `pools/src/null.rs`, the template, and allocation points, boxes, walks and
//! `Exhausted` work with it as with any other class (design/pool-null.md
//! `.req.template`).
//!
//!     cargo run --example 10_own_pool_class

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint::author::{Align, BasicBuffer, Block, Fill, Lock, PoolHeader, SymmetricFence, ensure, line};
use tripoint::{
    Addr, AllocationPoint, Arena, Check, CheckError, CheckLevel, ClientArena, ClientArenaOptions, Describe,
    Error, Exhausted, ManualPool, PoolClass, PoolSizes, Result, Store,
};

/// Every object is aligned to this and takes a multiple of it, in bytes.
const UNIT: Align = Align::new(16).unwrap();
/// What a buffer gets at a time, in bytes, unless an object needs more.
const FILL_SIZE: usize = 1024;
const FULL: Error = Error::Limit;

/// Memory that starts over when its last object dies.
#[derive(Debug)]
struct Batches<A: Arena> {
    state: Lock<State>,
    header: PoolHeader<A>,
}

#[derive(Debug)]
struct State {
    extent: Block,
    /// Bytes from the extent's base that were given out.
    mark: usize,
    /// Bytes given out and not given back.
    live: usize,
}

impl<A: Arena> Batches<A> {
    /// A pool that takes `size` bytes from the arena at once, and never more.
    fn create(arena: A, size: usize) -> Result<Self> {
        let header = PoolHeader::create(arena, Self::CLASS)?;
        let extent = header.extend(size)?;
        Ok(Self { state: Lock::new(State { extent, mark: 0, live: 0 }), header })
    }
}

impl State {
    fn free(&self) -> Block {
        self.extent.split_at(self.mark).map_or(self.extent, |(_, free)| free)
    }

    /// Takes `min..=max` bytes above the mark.
    fn take(&mut self, min: usize, max: usize, align: Align) -> Result<Block> {
        let free = self.free();
        let base = free.range().base();
        let gap = base.align_up(align).ok_or(FULL)?.get() - base.get();
        let (_, room) = free.split_at(gap).filter(|(_, room)| room.size() >= min).ok_or(FULL)?;
        let (taken, rest) = room.split_at(room.size().min(max)).ok_or(FULL)?;
        self.mark = self.extent.size() - rest.size();
        self.live += taken.size();
        Ok(taken)
    }

    fn give_back(&mut self, block: Block) {
        self.live -= block.size();
        if self.live == 0 {
            self.mark = 0;
        } else if block.limit() == self.free().base() {
            self.mark -= block.size();
        }
    }
}

// SAFETY: blocks are given out from the mark upwards, and the mark goes back only
// below what was given back; they are aligned as asked and to units, in base and
// size; the unit is a constant, and sizes depend on the layout only.
unsafe impl<A: Arena> PoolClass for Batches<A> {
    const CLASS: &'static str = "Batches";
    const FLIPPABLE: bool = false;

    type Arena = A;
    type Barrier = SymmetricFence;
    type Buffer = BasicBuffer;

    fn new_buffer(&self) -> BasicBuffer {
        BasicBuffer
    }

    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    fn min_align(&self) -> usize {
        UNIT.get()
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        UNIT.round_up(layout.size().max(1)).filter(|&size| size <= isize::MAX as usize)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        let size = self.reserve_size(layout).ok_or(FULL)?;
        let align = Align::of_layout(layout).max(UNIT);
        self.state.lock().take(size, size.max(FILL_SIZE), align).map(Fill::from)
    }

    unsafe fn empty(&self, unused: Block) {
        if unused.size() != 0 {
            self.state.lock().give_back(unused);
        }
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let free = self.state.lock().free();
        if free.size() != 0 {
            visit(free);
        }
    }

    fn sizes(&self) -> PoolSizes {
        let free = self.state.lock().free().size();
        PoolSizes {
            total: self.header.total(),
            free,
            largest_free: free,
            high_water: self.header.high_water(),
        }
    }
}

// SAFETY: what is given out stays until all of it was given back, whoever counts it.
unsafe impl<A: Arena> Store for Batches<A> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.reserve_size(layout).ok_or(FULL)?;
        let align = Align::of_layout(layout).max(UNIT);
        self.state.lock().take(size, size, align).map(Block::base)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        let Some(size) = self.reserve_size(layout) else { return };
        // SAFETY: the caller gives up an object that took `size` bytes.
        self.state.lock().give_back(unsafe { Block::new(self.header.reach(object.addr()), size) });
    }
}

// SAFETY: never flippable; what is given out stays until all of it was given back,
// whoever counts it.
unsafe impl<A: Arena> ManualPool for Batches<A> {}

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
        let (mark, live) = {
            let state = self.state.lock();
            (state.mark, state.live)
        };
        line(out, depth + 1, "live", format_args!("{live} bytes below the mark at {mark}"))
    }
}

/// A job of a batch, with whatever it refers to.
struct Job<'pool> {
    name: &'pool str,
    cost: u64,
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut memory = vec![core::mem::MaybeUninit::uninit(); 256 << 10];
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    let pool = Batches::create(&arena, 64 << 10)?;
    let base = Addr::of(pool.state.lock().extent.base().as_ptr());

    let mut point = AllocationPoint::create(&pool)?;
    for batch in 0..3_u64 {
        let jobs = (0..100)
            .map(|job| point.boxed(Job { name: "decode", cost: batch * 100 + job }))
            .collect::<Result<Vec<_>>>()?;
        let cost: u64 = jobs.iter().map(|job| job.cost).sum();
        println!("batch {batch}: {} jobs to {}, cost {cost}", jobs.len(), jobs[0].name);
        assert_eq!(Addr::of(&raw const *jobs[0]), base, "each batch starts over");
        point.empty();
        pool.check(CheckLevel::Deep)?;
    }
    assert_eq!(pool.sizes().free, pool.sizes().total);

    // A batch that is too large: an ordinary result, and the pool stays usable.
    let layout = Layout::new::<[u8; 100 << 10]>();
    let error = pool.alloc(layout).map_err(|error| Exhausted::of(&pool, layout, error)).unwrap_err();
    println!("{error}");

    let mut text = String::new();
    pool.describe(&mut text, 0)?;
    print!("{text}");
    Ok(())
}
