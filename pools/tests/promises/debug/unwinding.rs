//! A debug pool whose inner pool unwinds, as an event hook may, while it takes back what waits in a buffer.

use super::*;
use core::cell::Cell;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use tripoint_core::{GivesWay, KeepsInBuffer, OwnBuffer, SymmetricFence};
use tripoint_pools::FreedBlocks;

type Inner<'a> = Mvff<&'a ClientArena<'a>>;

/// A pool that unwinds when it has taken back what a buffer has, once.
struct Unwinds<'a> {
    pool: Inner<'a>,
    next: Cell<bool>,
}

impl<'a> Unwinds<'a> {
    fn inner<'b>(own: OwnBuffer<'b, Self, FreedBlocks>) -> OwnBuffer<'b, Inner<'a>, FreedBlocks> {
        // SAFETY: what it keeps was made by the pool inside, and `own` is the owner's.
        unsafe { OwnBuffer::new(&own.pool().pool, own.kept()) }
    }
}

impl KeepsInBuffer for Unwinds<'_> {
    type Buffer = FreedBlocks;

    fn new_buffer(&self) -> FreedBlocks {
        self.pool.new_buffer()
    }

    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, FreedBlocks>, layout: Layout) -> Result<Option<Fill>> {
        // SAFETY: the buffer is reset.
        unsafe { Inner::fill_buffer(Self::inner(own), layout) }
    }

    unsafe fn empty_buffer(own: OwnBuffer<'_, Self, FreedBlocks>, unused: Block) -> Option<Block> {
        // SAFETY: the caller returns the end of the buffer's fill.
        let unused = unsafe { Inner::empty_buffer(Self::inner(own), unused) };
        assert!(!own.pool().next.take(), "a hook that fails");
        unused
    }
}

impl GivesWay for Unwinds<'_> {}

// SAFETY: what the pool inside promises.
unsafe impl<'a> PoolClass for Unwinds<'a> {
    const CLASS: &'static str = Inner::CLASS;
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = Inner::SEAL_SIZE;

    type Arena = &'a ClientArena<'a>;
    type Barrier = SymmetricFence;

    fn header(&self) -> &PoolHeader<&'a ClientArena<'a>> {
        self.pool.header()
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    fn min_align(&self) -> usize {
        self.pool.min_align()
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        self.pool.reserve_size(layout)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        self.pool.fill(layout)
    }

    unsafe fn empty(&self, unused: Block) {
        // SAFETY: the caller returns the end of a fill.
        unsafe { self.pool.empty(unused) };
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.pool.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        self.pool.sizes()
    }
}

// SAFETY: what the pool inside promises.
unsafe impl ManualPool for Unwinds<'_> {}

// SAFETY: what the pool inside promises.
unsafe impl Store for Unwinds<'_> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.pool.alloc(layout)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up an object of the pool.
        unsafe { self.pool.free(object, layout) };
    }
}

impl Check for Unwinds<'_> {
    fn check(&self, level: CheckLevel) -> core::result::Result<(), CheckError> {
        self.pool.check(level)
    }
}

impl Describe for Unwinds<'_> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.pool.describe(out, depth)
    }
}

/// The first block of the fill is not lost.
#[test]
fn no_fill_is_lost_if_what_waits_does_not_go_back() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let options = MvffOptions { extend_by: GRAIN, fill_size: 1024, ..MvffOptions::default() };
    let pool = Unwinds { pool: Mvff::create(&arena, options).unwrap(), next: Cell::new(true) };
    let pool = DebugPool::create(pool, DebugOptions { held: 0, ..DebugOptions::default() }).unwrap();
    let mut objects: Vec<_> = (0..20).map(|_| Some(PoolBox::new_in([0_u64; 8], &pool).unwrap())).collect();
    let mut others = Vec::new();
    while pool.sizes().largest_free > 64 {
        others.push(PoolBox::new_in(0_u8, &pool).unwrap());
    }
    objects.iter_mut().step_by(2).for_each(|object| *object = None);
    let mut point = AllocationPoint::create(&pool).unwrap();
    let unwound = catch_unwind(AssertUnwindSafe(|| drop(point.boxed([0_u64; 8]))));
    assert!(unwound.is_err(), "nothing waited in the buffer");
    drop((objects, others));
    drop(point);
    assert_eq!(pool.sizes().free, pool.sizes().total, "bytes are lost");
    pool.check(CheckLevel::Deep).unwrap();
}
