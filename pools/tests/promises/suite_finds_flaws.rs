//! Negative controls of the conformance suite: a class that breaks one promise fails
//! the test that is there for it.

use core::alloc::Layout;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::catch_unwind;
use std::sync::Mutex;

use crate::common::test_arena::Refusal;
use crate::common::{TestArena, arena, classes, layout, memory};
use crate::suite::{exhaustion, layouts, lives, points, refusals};
use tripoint_core::{
    Arena, BasicBuffer, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, GivesWay, KeepsInBuffer,
    Magazine, ManualPool, PoolClass, PoolHeader, PoolSizes, Result, Store, SymmetricFence,
};
use tripoint_oracle::Operation;
use tripoint_pools::Mvff;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    None,
    /// Frees are forgotten.
    LostFrees,
    /// What buffers return is forgotten.
    LostEmpties,
    /// Everything is allocated at the same place.
    Overlaps,
    /// Alignments are ignored.
    Misaligned,
    /// A request that is refused costs memory.
    LostOnRefusal,
    /// Memory is gone once the arena was full.
    GivesUp,
    /// A walk shows free blocks twice.
    WalksTwice,
    /// Rounds sizes down.
    SmallSizes,
    /// Refuses with the wrong error.
    WrongError,
    /// Says that objects may grow in place, without room for it.
    ResizesBlindly,
    /// Refuses what would fit.
    RefusesWhatFits,
    /// Allocates the same object twice if several are asked for together.
    ManyOverlap,
    /// Frees only one of several that are freed together.
    LostManyFrees,
}

/// A pool with a flaw.
struct Flawed<A: Arena> {
    pool: Mvff<A>,
    flaw: Flaw,
    first: Mutex<Option<usize>>,
}

impl<A: Arena> Flawed<A> {
    fn create(arena: A, flaw: Flaw) -> Result<Self> {
        Ok(Self { pool: classes::mvff(arena)?, flaw, first: Mutex::new(None) })
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    /// Allocates and forgets.
    fn lose(&self) {
        let _lost = self.pool.alloc(layout(16, 1));
    }
}

impl<A: Arena> KeepsInBuffer for Flawed<A> {
    type Buffer = BasicBuffer;

    fn new_buffer(&self) -> BasicBuffer {
        BasicBuffer
    }
}

impl<A: Arena> GivesWay for Flawed<A> {}

// SAFETY: not upheld, on purpose; the tests touch only memory of the arena.
unsafe impl<A: Arena> PoolClass for Flawed<A> {
    const CLASS: &'static str = "MVFF";
    const FLIPPABLE: bool = false;

    type Arena = A;
    type Barrier = SymmetricFence;

    fn header(&self) -> &PoolHeader<A> {
        self.pool.header()
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    fn min_align(&self) -> usize {
        self.pool.min_align()
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        if self.has(Flaw::SmallSizes) {
            return Some((layout.size() & !(self.min_align() - 1)).max(self.min_align()));
        }
        self.pool.reserve_size(layout)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        self.pool.fill(layout)
    }

    unsafe fn empty(&self, unused: Block) {
        if !self.has(Flaw::LostEmpties) {
            // SAFETY: the caller promises an unused part of a fill, and every fill is the inner pool's.
            unsafe { self.pool.empty(unused) };
        }
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.pool.walk_free(&mut |block| {
            visit(block);
            if self.has(Flaw::WalksTwice) {
                visit(block);
            }
        });
    }

    fn sizes(&self) -> PoolSizes {
        self.pool.sizes()
    }
}

// SAFETY: not upheld, on purpose; the tests touch only memory of the arena.
unsafe impl<A: Arena> Store for Flawed<A> {
    fn alloc(&self, mut layout: Layout) -> Result<NonNull<u8>> {
        if self.has(Flaw::RefusesWhatFits) && self.pool.sizes().free != 0 {
            return Err(Error::Limit);
        }
        if self.has(Flaw::Misaligned) {
            layout = Layout::from_size_align(layout.size() + 16, 1).map_err(|_| Error::Limit)?;
        }
        let object = match self.pool.alloc(layout) {
            Err(_) if self.has(Flaw::WrongError) => return Err(Error::Resource),
            Err(Error::Memory) if self.has(Flaw::LostOnRefusal) => {
                self.lose();
                return Err(Error::Memory);
            }
            Err(Error::Limit) if self.has(Flaw::GivesUp) => {
                self.lose();
                return Err(Error::Limit);
            }
            alloc => alloc?,
        };
        if self.has(Flaw::Overlaps) {
            let first = *self.first.lock().unwrap().get_or_insert(object.addr().get());
            return Ok(object.map_addr(|addr| first.try_into().unwrap_or(addr)));
        }
        Ok(object)
    }

    fn alloc_many(&self, layout: Layout, magazine: &mut Magazine) {
        self.pool.alloc_many(layout, magazine);
        if self.has(Flaw::ManyOverlap)
            && let (Some(_lost), Some(twice)) = (magazine.pop(), magazine.as_slice().last().copied())
        {
            let _ = magazine.push(twice);
        }
    }

    unsafe fn free_many(&self, layout: Layout, magazine: &mut Magazine) {
        if self.has(Flaw::LostManyFrees) {
            magazine.pop();
        }
        // SAFETY: the caller promises objects from `alloc` or `alloc_many`, which are the inner pool's.
        unsafe { self.pool.free_many(layout, magazine) };
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        if !self.has(Flaw::LostFrees) {
            // SAFETY: the caller promises an object from `alloc`, which is the inner pool's.
            unsafe { self.pool.free(object, layout) };
        }
    }

    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        self.resizes_in_place(from, to).then_some(object)
    }
}

// SAFETY: not upheld, on purpose; the tests touch only memory of the arena.
unsafe impl<A: Arena> ManualPool for Flawed<A> {
    fn resizes_in_place(&self, from: Layout, to: Layout) -> bool {
        self.has(Flaw::ResizesBlindly) || self.pool.resizes_in_place(from, to)
    }
}

impl<A: Arena> Check for Flawed<A> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.pool.check(level)
    }
}

impl<A: Arena> Describe for Flawed<A> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.pool.describe(out, depth)
    }
}

fn operations() -> Vec<Operation> {
    let alloc = |which: usize| Operation::Alloc(LAYOUTS[which % LAYOUTS.len()]);
    let mut operations = vec![
        Operation::Fill { layout: LAYOUTS[1], objects: 2 },
        Operation::Point { layout: LAYOUTS[0], objects: 4 },
    ];
    operations.extend((0..if cfg!(miri) { 3 } else { 12 }).map(alloc));
    operations.extend([Operation::Free(3), Operation::EmptyFill(0), Operation::Free(7), alloc(2)]);
    operations
}

const LAYOUTS: [Layout; 3] = [layout(40, 8), layout(24, 64), layout(100, 1)];

/// Whether a test fails for a pool with this flaw, in an arena of `grains`
/// grains.
fn finds(flaw: Flaw, grains: usize, test: impl Fn(&Flawed<&tripoint_core::ClientArena<'_>>)) -> bool {
    let mut memory = memory(grains);
    let arena = arena(&mut memory);
    let pool = Flawed::create(&arena, flaw).unwrap();
    catch_unwind(AssertUnwindSafe(|| test(&pool))).is_err()
}

/// The test passes without a flaw and fails with it.
fn assert_finds(flaw: Flaw, grains: usize, test: impl Fn(&Flawed<&tripoint_core::ClientArena<'_>>)) {
    assert!(!finds(Flaw::None, grains, &test), "the test fails although there is no flaw");
    assert!(finds(flaw, grains, &test), "{flaw:?} goes unseen");
}

#[test]
fn lives_find_what_is_lost_overlaps_is_misaligned_or_refused() {
    let flaws = [Flaw::Overlaps, Flaw::LostEmpties, Flaw::LostFrees, Flaw::Misaligned, Flaw::WalksTwice];
    for flaw in flaws.into_iter().take(if cfg!(miri) { 2 } else { 5 }) {
        assert_finds(flaw, 24, |pool| lives::live(pool, &[], &operations()));
    }
    assert_finds(Flaw::RefusesWhatFits, 24, |pool| lives::live(pool, &[], &operations()));
    let mut many = operations();
    many.push(Operation::AllocMany { layout: LAYOUTS[0], most: 8 });
    many.push(Operation::FreeMany { object: 0, most: 8 });
    for flaw in [Flaw::ManyOverlap, Flaw::LostManyFrees] {
        assert_finds(flaw, 24, |pool| lives::live(pool, &[], &many));
    }
    let mut resized = operations();
    resized.extend((0..12).map(|object| Operation::Resize { object, size: 100 }));
    assert_finds(Flaw::ResizesBlindly, 24, |pool| lives::live(pool, &[], &resized));
    // Two grains are not enough for the objects.
    assert_finds(Flaw::WrongError, 2, |pool| {
        lives::live(pool, &[], &[Operation::Alloc(layout(2000, 8)); 12]);
    });
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn exhaustion_finds_a_pool_that_gives_up() {
    let size = if cfg!(miri) { 1000 } else { 40 };
    assert_finds(Flaw::GivesUp, 8, |pool| exhaustion::runs_out_and_recovers(pool, layout(size, 8)));
}

#[test]
fn points_find_what_is_not_returned() {
    assert_finds(Flaw::LostEmpties, 8, |pool| points::fills_and_empties_balance(pool, layout(40, 8)));
    assert_finds(Flaw::LostFrees, 8, |pool| points::objects_of_points_are_freed(pool));
}

#[test]
fn layouts_find_sizes_and_alignments_that_are_wrong() {
    assert_finds(Flaw::SmallSizes, 2, |pool| layouts::reserve_sizes_are_kept(pool, layout(41, 8)));
    assert_finds(Flaw::Misaligned, 64, |pool| layouts::alignments_are_kept(pool, 48));
    assert_finds(Flaw::ResizesBlindly, 24, |pool| {
        layouts::resized_objects_are_freed(pool, layout(16, 1), layout(100, 1));
    });
}

#[test]
fn refusals_find_what_is_lost_by_them() {
    let finds = |flaw, patience| {
        let mut memory = memory(if cfg!(miri) { 24 } else { 64 });
        let whole = arena(&mut memory);
        let refusing = TestArena::refusing(&whole, patience, Refusal::Stays);
        let pool = refusals::insist(&refusing, || Flawed::create(&refusing, flaw));
        let live = || {
            refusals::live_through(&refusing, &pool, layout(3000, 8));
        };
        catch_unwind(AssertUnwindSafe(live)).is_err()
    };
    assert!(!(0..8).step_by(if cfg!(miri) { 5 } else { 1 }).any(|patience| finds(Flaw::None, patience)));
    assert!((0..8).any(|patience| finds(Flaw::LostOnRefusal, patience)));
}
