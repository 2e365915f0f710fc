//! A pool class made for tests, in both forms, that remembers every fill that is out
//! and panics if a buffer does anything that it may not do with one.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tripoint_core::{
    AddrRange, Align, BarrierPair, BasicBuffer, Block, BufferClass, Check, CheckError, CheckLevel,
    ClientArena, Describe, Error, Fill, GivesWay, KeepsInBuffer, ManualPool, PoolClass, PoolHeader,
    PoolSizes, RankSet, Result, Segment, SegmentBuffer, Store, SymmetricFence, ensure,
};

/// The alignment, in bytes, of everything in a test pool.
pub const MIN_ALIGN: usize = 16;
/// The largest object, in bytes, that a test pool serves.
pub const SIZE_MAX: usize = 2 << 20;
/// The largest alignment, in bytes, that a test pool serves.
pub const ALIGN_MAX: usize = 4096;

/// The choice between the two forms of commit of a test pool.
pub trait Form: Copy + Sync + fmt::Debug {
    /// See [`PoolClass::CLASS`].
    const CLASS: &'static str;
    /// See [`PoolClass::FLIPPABLE`].
    const FLIPPABLE: bool;
    /// See [`PoolClass::Barrier`].
    type Barrier: BarrierPair;
    /// See [`KeepsInBuffer::Buffer`].
    type Buffer: BufferClass;
    /// See [`PoolClass::barrier`].
    fn barrier(self) -> Self::Barrier;
    /// See [`KeepsInBuffer::new_buffer`].
    fn new_buffer(self) -> Self::Buffer;
}

/// The manual form.
#[derive(Clone, Copy, Debug)]
pub struct Manual;

impl Form for Manual {
    const CLASS: &'static str = "Bump";
    const FLIPPABLE: bool = false;
    type Barrier = SymmetricFence;
    type Buffer = BasicBuffer;
    fn barrier(self) -> SymmetricFence {
        SymmetricFence
    }
    fn new_buffer(self) -> BasicBuffer {
        BasicBuffer
    }
}

/// The flippable form.
#[derive(Clone, Copy, Debug)]
pub struct Flippable<B>(pub B);

impl<B: BarrierPair> Form for Flippable<B> {
    const CLASS: &'static str = "Flip";
    const FLIPPABLE: bool = true;
    type Barrier = B;
    type Buffer = SegmentBuffer;
    fn barrier(self) -> B {
        self.0
    }
    fn new_buffer(self) -> SegmentBuffer {
        SegmentBuffer::new(RankSet::EXACT)
    }
}

/// A manual pool.
pub type BumpPool<'a> = TestPool<'a, Manual>;
/// A pool whose buffers may be flipped.
pub type FlipPool<'a, B = SymmetricFence> = TestPool<'a, Flippable<B>>;

/// A pool that fills from blocks returned to it, or otherwise from new tracts.
#[derive(Debug)]
pub struct TestPool<'a, F: Form> {
    form: F,
    fill_size: usize,
    state: Mutex<State>,
    header: PoolHeader<&'a ClientArena<'a>>,
}

#[derive(Debug, Default)]
struct State {
    out: Vec<Out>,
    free: Vec<Block>,
    extents: Vec<Block>,
    failure: Option<Error>,
    preallocated: usize,
    segment: Option<&'static Segment>,
}

/// A fill that is out: all of it, and what the buffer may allocate in.
#[derive(Debug)]
struct Out {
    block: Block,
    fresh: AddrRange,
}

impl<'a> BumpPool<'a> {
    /// A pool whose fills have at least `fill_size` bytes.
    pub fn create(arena: &'a ClientArena<'a>, fill_size: usize) -> Self {
        Self::with_form(arena, fill_size, Manual)
    }
}

impl<'a, B: BarrierPair> FlipPool<'a, B> {
    /// A pool whose fills have at least `fill_size` bytes.
    pub fn create(arena: &'a ClientArena<'a>, fill_size: usize, barrier: B) -> Self {
        Self::with_form(arena, fill_size, Flippable(barrier))
    }
}

impl<'a, F: Form> TestPool<'a, F> {
    /// A pool whose fills have at least `fill_size` bytes.
    pub fn with_form(arena: &'a ClientArena<'a>, fill_size: usize, form: F) -> Self {
        assert!(fill_size.is_multiple_of(MIN_ALIGN));
        let header = PoolHeader::create(arena, F::CLASS).unwrap();
        Self { form, fill_size, state: Mutex::default(), header }
    }

    /// From now on fills fail with this error, or no longer.
    pub fn fail_fills(&self, failure: Option<Error>) {
        self.state().failure = failure;
    }

    /// From now on this many bytes of each fill are allocated already.
    pub fn preallocate(&self, size: usize) {
        assert!(size.is_multiple_of(MIN_ALIGN));
        self.state().preallocated = size;
    }

    /// From now on fills say that they lie in this segment.
    pub fn fill_from(&self, segment: &'static Segment) {
        self.state().segment = Some(segment);
    }

    /// The parts in which buffers may allocate, of the fills that are out.
    pub fn fills(&self) -> Vec<AddrRange> {
        self.state().out.iter().map(|out| out.fresh).collect()
    }

    /// Frees every object at once.
    ///
    /// # Safety
    /// - No object of the pool is used any more.
    pub unsafe fn reclaim(&self) {
        let state = &mut *self.state();
        assert!(state.out.is_empty(), "fills are in buffers: {:?}", state.out);
        state.free.clone_from(&state.extents);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A hook may unwind while the pool extends; nothing was changed by then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a block aligned for `layout`, of its size or the size of a fill,
    /// whichever is larger.
    fn take(&self, state: &mut State, layout: Layout) -> Result<Block> {
        let fit = |block: &Block| cut(*block, layout).is_some();
        let block = match state.free.iter().position(fit) {
            Some(index) => state.free.swap_remove(index),
            None => {
                let extent = self.header.extend(layout.size().max(self.fill_size) + layout.align())?;
                state.extents.push(extent);
                extent
            }
        };
        let (before, rest) = cut(block, layout).unwrap();
        let (block, after) = match rest.split_at(layout.size().max(self.fill_size)) {
            Some((block, after)) => (block, Some(after)),
            None => (rest, None),
        };
        let parts = [Some(before), after].into_iter().flatten();
        state.free.extend(parts.filter(|part| part.size() > 0));
        Ok(block)
    }
}

/// What comes before the first place in `block` where `layout` fits, and the rest.
fn cut(block: Block, layout: Layout) -> Option<(Block, Block)> {
    let base = block.range().base();
    let gap = base.align_up(Align::of_layout(layout))?.get() - base.get();
    block.split_at(gap).filter(|(_, rest)| rest.size() >= layout.size())
}

fn rounded(layout: Layout) -> Option<usize> {
    let size = layout.size().max(1).next_multiple_of(MIN_ALIGN);
    (size <= SIZE_MAX && layout.align() <= ALIGN_MAX).then_some(size)
}

impl<F: Form> KeepsInBuffer for TestPool<'_, F> {
    type Buffer = F::Buffer;

    fn new_buffer(&self) -> F::Buffer {
        self.form.new_buffer()
    }
}

impl<F: Form> GivesWay for TestPool<'_, F> {}

// SAFETY: fills are cut from blocks that leave the free list, so none overlap;
// they are aligned as asked, with the preallocated part rounded to the alignment,
// and all sizes are multiples of `MIN_ALIGN`.
unsafe impl<'a, F: Form> PoolClass for TestPool<'a, F> {
    const CLASS: &'static str = F::CLASS;
    const FLIPPABLE: bool = F::FLIPPABLE;
    type Arena = &'a ClientArena<'a>;
    type Barrier = F::Barrier;

    fn header(&self) -> &PoolHeader<Self::Arena> {
        &self.header
    }

    fn barrier(&self) -> F::Barrier {
        self.form.barrier()
    }

    fn min_align(&self) -> usize {
        MIN_ALIGN
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        rounded(layout)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        assert_eq!(rounded(layout), Some(layout.size()), "a fill for {layout:?}, which is no reserve size");
        let mut state = self.state();
        if let Some(failure) = state.failure {
            return Err(failure);
        }
        let align = layout.align().max(MIN_ALIGN);
        let preallocated = state.preallocated.next_multiple_of(align);
        let layout = Layout::from_size_align(layout.size() + preallocated, align).unwrap();
        let block = self.take(&mut state, layout)?;
        let base = block.range().base().checked_add(preallocated).unwrap();
        state.out.push(Out { block, fresh: AddrRange::new(base, block.range().limit()).unwrap() });
        Ok(Fill { block, preallocated, segment: state.segment.map(NonNull::from) })
    }

    unsafe fn empty(&self, unused: Block) {
        let mut state = self.state();
        let tail = |out: &Out| out.block.limit() == unused.limit() && out.fresh.covers(unused.range());
        let index = state.out.iter().position(tail);
        let index = index.unwrap_or_else(|| panic!("{unused:?} is the end of no fill of {:?}", state.out));
        assert!(unused.size().is_multiple_of(MIN_ALIGN), "{unused:?} is not in whole steps of {MIN_ALIGN}");
        state.out.swap_remove(index);
        if unused.size() > 0 {
            state.free.push(unused);
        }
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let mut free = self.state().free.clone();
        free.sort_by_key(|block| block.range().base());
        free.into_iter().for_each(visit);
    }

    fn sizes(&self) -> PoolSizes {
        let state = self.state();
        PoolSizes {
            total: self.header.total(),
            free: state.free.iter().map(|block| block.size()).sum(),
            largest_free: state.free.iter().map(|block| block.size()).max().unwrap_or(0),
            high_water: self.header.high_water(),
        }
    }
}

// SAFETY: blocks are cut from tracts or taken off the free list, and join that when they are freed.
unsafe impl Store for BumpPool<'_> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = rounded(layout).ok_or(Error::Parameter("not served"))?;
        let layout = Layout::from_size_align(size, layout.align().max(MIN_ALIGN)).unwrap();
        let mut state = self.state();
        let block = self.take(&mut state, layout)?;
        let (object, rest) = block.split_at(size).unwrap();
        state.free.extend(Some(rest).filter(|part| part.size() > 0));
        Ok(object.base())
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        let size = rounded(layout).unwrap();
        // SAFETY: the caller gives up an object, which took this many bytes.
        let block = unsafe { Block::new(self.header.reach(object.addr()), size) };
        let mut state = self.state();
        assert!(
            !state.free.iter().any(|free| free.range().overlaps(block.range())),
            "{block:?} is freed, and was free"
        );
        state.free.push(block);
    }
}

// SAFETY: the manual form is not flippable, and frees whatever was allocated in it.
unsafe impl ManualPool for BumpPool<'_> {}

impl<F: Form> Check for TestPool<'_, F> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)?;
        let state = self.state();
        let ranges: Vec<AddrRange> = state
            .out
            .iter()
            .map(|out| out.block.range())
            .chain(state.free.iter().map(|block| block.range()))
            .collect();
        let apart = ranges
            .iter()
            .enumerate()
            .all(|(index, range)| ranges[..index].iter().all(|other| !range.overlaps(*other)));
        ensure("TestPool", level < CheckLevel::Deep || apart, "fills and free blocks do not overlap")
    }
}

impl<F: Form> Describe for TestPool<'_, F> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}
