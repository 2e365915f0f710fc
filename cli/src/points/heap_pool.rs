//! A pool of a heap in the replay. Where its memory lies, and when, is decided by collections, which go by what objects
//! contain, and a log does not have that. So the pool does what the log says, and its points are replayed
//! ([design/point-log.md `.heaps`](tripoint_telemetry::design::point_log)).

use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::num::NonZeroUsize;
use std::collections::VecDeque;

use tripoint::author::{
    Align, Block, Fill, GivesWay, KeepsInBuffer, PoolHeader, RankSet, SegmentBuffer, SymmetricFence,
};
use tripoint::{Arena, Check, CheckError, CheckLevel, Describe, Error, PoolClass, PoolSizes, Result};

use super::hook::Hook;
use super::objects::Impossible;
use super::pool::{Call, Points, Pool, Whole};

const NOT_ITS_MEMORY: Impossible =
    Impossible("it fills a buffer with memory outside of its arena, or not aligned as objects are");
const NOT_FREED: Impossible = Impossible("objects of a heap are neither freed nor popped");
const ONLY_A_PART: Impossible = Impossible("a part of a batch was committed in a heap: this is not replayed");

/// What refuses a fill, as far as that is replayed.
const REFUSALS: [Error; 4] = [Error::CommitLimit, Error::Limit, Error::Memory, Error::Frozen];

/// A pool whose fills are decided beforehand. No object of it is ever written or read.
#[derive(Debug)]
struct Decided<'a, A: Arena, const FLIPPABLE: bool> {
    align: Align,
    ranks: RankSet,
    fills: RefCell<VecDeque<Block>>,
    refusal: Cell<Error>,
    /// Whether the point that reserves next gives way, and so empties its buffer first.
    gives_way: Cell<bool>,
    header: PoolHeader<&'a A>,
}

impl<'a, A: Arena, const FLIPPABLE: bool> Decided<'a, A, FLIPPABLE> {
    fn create(arena: &'a A, class: &'static str, align: Align, ranks: RankSet) -> Result<Self> {
        let (fills, refusal, gives_way) = (RefCell::default(), Cell::new(Error::Memory), Cell::new(false));
        Ok(Self { align, ranks, fills, refusal, gives_way, header: PoolHeader::create(arena, class)? })
    }

    /// Decides on the next fill: that many bytes, counted from the arena's base.
    fn decide(&self, offset: u64, size: u64) -> Option<()> {
        let range = self.header.arena().range();
        let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
        let is_whole = size != 0 && [offset, size].iter().all(|part| part.is_multiple_of(self.align.get()));
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= range.size());
        let base = NonZeroUsize::new(range.base().get().checked_add(offset)?)?;
        if !is_whole || !is_inside {
            return None;
        }
        // SAFETY: it is in the range of the arena, from whose provenance the pointer is, and nothing accesses it.
        self.fills.borrow_mut().push_back(unsafe { Block::new(self.header.reach(base), size) });
        Some(())
    }
}

impl<A: Arena, const FLIPPABLE: bool> KeepsInBuffer for Decided<'_, A, FLIPPABLE> {
    type Buffer = SegmentBuffer;

    fn new_buffer(&self) -> SegmentBuffer {
        SegmentBuffer::new(self.ranks)
    }
}

impl<A: Arena, const FLIPPABLE: bool> GivesWay for Decided<'_, A, FLIPPABLE> {
    const GIVES_WAY: bool = true;

    fn wants_stop(&self) -> bool {
        self.gives_way.take()
    }
}

// SAFETY: fills are in the range of the arena, and aligned as objects are. Two may be the same memory, if the log says so:
// no object is accessed. Sizes are rounded to the alignment, which never changes.
unsafe impl<'a, A: Arena, const FLIPPABLE: bool> PoolClass for Decided<'a, A, FLIPPABLE> {
    const CLASS: &'static str = "heap";
    const FLIPPABLE: bool = FLIPPABLE;

    type Arena = &'a A;
    type Barrier = SymmetricFence;

    fn header(&self) -> &PoolHeader<&'a A> {
        &self.header
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    fn min_align(&self) -> usize {
        self.align.get()
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        let size = self.align.round_up(layout.size().max(1))?;
        (layout.align() <= self.align.get() && size <= isize::MAX.unsigned_abs()).then_some(size)
    }

    fn fill(&self, _layout: Layout) -> Result<Fill> {
        let block = self.fills.borrow_mut().pop_front().ok_or(self.refusal.get())?;
        Ok(Fill { block, preallocated: 0, segment: None })
    }

    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, _visit: &mut dyn FnMut(Block)) {}

    fn sizes(&self) -> PoolSizes {
        PoolSizes::default()
    }
}

impl<A: Arena, const FLIPPABLE: bool> Check for Decided<'_, A, FLIPPABLE> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl<A: Arena, const FLIPPABLE: bool> Describe for Decided<'_, A, FLIPPABLE> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}

/// A pool of a heap, with its points.
struct OfHeap<'a, A: Arena, const FLIPPABLE: bool> {
    whole: Whole<'a, Decided<'a, A, FLIPPABLE>>,
    hook: &'a Hook,
}

impl<'a, A: Arena, const FLIPPABLE: bool> Pool for OfHeap<'a, A, FLIPPABLE> {
    fn call(&mut self, buffer: u64, call: Call) -> Result<(), Impossible> {
        let whole = &mut self.whole;
        match call {
            Call::CreatePoint(kind) => whole.create_point(buffer, kind, self.hook),
            Call::DestroyPoint => whole.destroy_point(buffer)?,
            Call::Reserve { size, committed, .. } if committed != 0 && committed < size => {
                return Err(ONLY_A_PART);
            }
            Call::Reserve { layout, size, committed, .. } => {
                _ = whole.reserve(buffer, layout, size, committed)?;
            }
            Call::Empty => whole.empty(buffer)?,
            _ => return Err(NOT_FREED),
        }
        Ok(())
    }

    fn whole(&self) -> &dyn Points {
        &self.whole
    }

    fn decide_fill(&self, offset: u64, size: u64) -> Result<(), Impossible> {
        self.whole.pool().decide(offset, size).ok_or(NOT_ITS_MEMORY)
    }

    fn decide_way(&self, gives_way: bool) {
        self.whole.pool().gives_way.set(gives_way);
    }

    fn decide_refusal(&self, error: &str) {
        if let Some(refusal) = REFUSALS.into_iter().find(|refusal| refusal.name() == error) {
            self.whole.pool().refusal.set(refusal);
        }
    }
}

/// Whether pools of this class are those of a heap.
pub(super) fn is_of_heap(class: &str) -> bool {
    ranks_of(class).is_some()
}

/// The name of a class of a heap, and the ranks of its points, if they are flipped.
fn ranks_of(class: &str) -> Option<(&'static str, RankSet)> {
    let classes = [
        ("AMC", RankSet::EXACT),
        ("AMS", RankSet::EXACT),
        ("AWL", RankSet::WEAK),
        ("AMCZ", RankSet::empty()),
        ("LO", RankSet::empty()),
    ];
    classes.into_iter().find(|(name, _)| *name == class)
}

/// Makes a pool of a heap, whose objects are aligned to that many bytes.
pub(super) fn make<'a, A: Arena>(
    arena: &'a A,
    hook: &'a Hook,
    class: &str,
    align: usize,
) -> Result<Result<Box<dyn Pool + 'a>>, Impossible> {
    let (class, ranks) = ranks_of(class).ok_or(Impossible("pools of this class are not replayed"))?;
    let align = Align::new(align).ok_or(Impossible("the alignment of its objects is none"))?;
    if ranks.is_empty() {
        let pool = Decided::<A, false>::create(arena, class, align, ranks);
        return Ok(
            pool.map(|pool| -> Box<dyn Pool + 'a> { Box::new(OfHeap { whole: Whole::new(pool), hook }) })
        );
    }
    let pool = Decided::<A, true>::create(arena, class, align, ranks);
    Ok(pool.map(|pool| -> Box<dyn Pool + 'a> { Box::new(OfHeap { whole: Whole::new(pool), hook }) }))
}
