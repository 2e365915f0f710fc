//! Stack: objects that die together, in the reverse order of their frames.
//!
//! Nothing is freed one by one; popping a frame takes all that was allocated since
//! its push (design/pool-snc.md `.snc`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Align, Arena, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, FramePool, GivesWay,
    KeepsInBuffer, LockKind, OwnBuffer, Owned, PoolClass, PoolHeader, PoolLock, PoolOptions, PoolSizes,
    Result, Shared, SymmetricFence, aver, line,
};

use crate::granules::Granules;
use crate::land::{GRANULE, Land};
use crate::link::LinkKey;
use crate::poison::poison;

mod stack;

use stack::HEAD_SIZE;
pub use stack::StackBuffer;

const TOO_LARGE: Error = Error::Parameter("the size, rounded up to granules, is above isize::MAX");
const NO_BUFFER: Error = Error::Parameter("a stack pool fills only buffers that it knows");

/// Options for an [`Snc`]. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct SncOptions {
    /// By how much the pool extends itself, unless a request needs more or the
    /// arena has only what the request needs. Default: 64 KiB.
    pub extend_by: usize,
    /// The most that one fill takes, its head of one [`GRANULE`] included, unless
    /// the request needs more. A pop within a fill takes constant time. If it is more
    /// than `extend_by`, a fill may still be no larger than that. Default: 64 KiB.
    pub fill_size: usize,
}

impl Default for SncOptions {
    fn default() -> Self {
        Self { extend_by: 64 << 10, fill_size: 64 << 10 }
    }
}

/// A pool of the class SNC, stack (MPS: "stack, no checking").
///
/// Its allocation points are stacks: their frames are pushed and popped, and an
/// object lives until the frame it was allocated in is popped or its allocation
/// point is dropped. Sizes are rounded up to [`GRANULE`], which is also the
/// alignment that objects have without asking. Any alignment is served.
///
/// Allocate in a scope, which pops what it allocated when it ends; `alloc` and
/// `boxed` are for manual pools.
///
/// ```
/// # use tripoint_ap::AllocationPoint;
/// # use tripoint_core::{ClientArena, ClientArenaOptions, Error};
/// # use tripoint_pools::{Snc, SncOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let stack = Snc::create(&arena, SncOptions::default())?;
/// let mut point = AllocationPoint::create(&stack)?;
/// let sum = point.scope(|scope| {
///     let squares = scope.slice(100, |index| index * index)?;
///     Ok::<usize, Error>(squares.iter().sum())
/// })?;
/// assert_eq!(sum, 328_350);
/// # Ok::<(), Error>(())
/// ```
#[doc(alias("stack", "bump", "region"))]
#[derive(Debug)]
pub struct Snc<A: Arena, L: LockKind = Shared> {
    options: SncOptions,
    /// The blocks in no stack.
    granules: Granules<A, Land, L>,
}

impl<A: Arena> Snc<A> {
    /// Creates a pool in the arena. It takes no memory until it is used.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for an arena whose grain is below two granules
    /// - those of [`Arena::register`]
    pub fn create(arena: A, options: SncOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena> Snc<A, Owned> {
    /// As `create`, for a pool that one thread owns: its calls take no lock, and while it is borrowed it stays in its
    /// thread. See [`Owned`].
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create_owned(arena: A, options: SncOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena, L: LockKind> Snc<A, L> {
    fn with_lock(arena: A, options: SncOptions) -> Result<Self> {
        let fill_size = options.fill_size - options.fill_size % GRANULE;
        let passed = PoolOptions::new([options.extend_by, options.fill_size]);
        let granules = Granules::create(arena, Self::CLASS, passed, Land::new)?;
        Ok(Self { options: SncOptions { fill_size, ..options }, granules })
    }

    /// Takes a block for a buffer: the first that is as large as a fill, or else a
    /// part of the largest, or else a new one.
    fn take(&self, needed: usize) -> Result<Block> {
        let most = needed.max(self.options.fill_size);
        let look = |land: &mut Land| {
            let least = most.min(land.largest()).max(needed);
            land.take_first_bounded(least, most, GRANULE_ALIGN)
        };
        let found = look(&mut *self.granules.free.lock()?);
        if let Some(found) = found {
            return Ok(found);
        }
        let wanted = (needed, most, GRANULE_ALIGN);
        self.granules.take_growing(wanted, self.options.extend_by, |land| Ok(look(land)), |_| Ok(()))
    }

    /// Takes the topmost block of a stack back. A head that was written over is noted
    /// in the land, and ends the stack.
    ///
    /// # Safety
    /// - Nothing uses the memory of the block.
    unsafe fn take_back(land: &mut Land, own: OwnBuffer<'_, Self, StackBuffer>) -> bool {
        let block = land.note(StackBuffer::pop(own)).unwrap_or_default();
        if let Some(block) = block {
            // SAFETY: nothing uses the memory of the block.
            unsafe { poison(block) };
            // SAFETY: a block that came out of the land whole, and that nothing uses.
            unsafe { land.insert(block) };
        }
        block.is_some()
    }
}

const GRANULE_ALIGN: Align = Align::new(GRANULE).unwrap();

impl<A: Arena, L: LockKind> KeepsInBuffer for Snc<A, L> {
    const KEEPS_UNUSED: bool = true;

    type Buffer = StackBuffer;

    fn new_buffer(&self) -> StackBuffer {
        StackBuffer::new(LinkKey::of(&self.granules.header))
    }

    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, StackBuffer>, layout: Layout) -> Result<Option<Fill>> {
        let size = own.pool().reserve_size(layout).ok_or(TOO_LARGE)?;
        let padding = layout.align().saturating_sub(GRANULE);
        let needed = size.checked_add(HEAD_SIZE).and_then(|sum| sum.checked_add(padding)).ok_or(TOO_LARGE)?;
        let block = own.pool().take(needed)?;
        // SAFETY: taken out of the land, in granules, and larger than a head.
        let block = unsafe { StackBuffer::push(own, block) };
        let base = block.range().base();
        let object = base.align_up(Align::of_layout(layout));
        aver!(
            object.is_some_and(|object| object.get() - base.get() + size <= block.size()),
            "{block:?} was taken for {size} bytes of {layout:?}"
        );
        let object = object.ok_or(Error::Limit)?;
        Ok(Some(Fill { block, preallocated: object.get() - base.get(), segment: None }))
    }

    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, StackBuffer>) -> bool {
        let Ok(mut land) = own.pool().granules.free.lock() else { return true };
        // SAFETY: the caller says that nothing uses the objects.
        while unsafe { Self::take_back(&mut land, own) } {}
        true
    }
}

impl<A: Arena, L: LockKind> GivesWay for Snc<A, L> {}

// SAFETY: blocks are taken out of the land before they are handed out, and are returned to it
// when they are popped, so no two overlap. The pool touches only their heads, which are not
// handed out. Fills begin with what aligns the object, counted as allocated, and everything is in
// whole granules. Granules are a constant, and sizes depend on the layout alone.
unsafe impl<A: Arena, L: LockKind> PoolClass for Snc<A, L> {
    const CLASS: &'static str = "SNC";
    const FLIPPABLE: bool = false;

    type Arena = A;
    type Barrier = SymmetricFence;

    fn header(&self) -> &PoolHeader<A> {
        &self.granules.header
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    #[inline]
    fn min_align(&self) -> usize {
        GRANULE
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        Land::granules(layout.size())
    }

    /// Refuses: memory that is in no stack could never be returned.
    fn fill(&self, _layout: Layout) -> Result<Fill> {
        Err(NO_BUFFER)
    }

    /// Does nothing: what a buffer did not use stays with its block, which may be
    /// attached again, until that is popped.
    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.granules.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        let (free, largest) = self
            .granules
            .free
            .lock()
            .map_or((0, 0), |land| (land.size(), land.largest().saturating_sub(HEAD_SIZE)));
        PoolSizes::of(&self.granules.header, free, largest)
    }
}

// SAFETY: the class is not flippable. `fill_buffer` pushes the block that it returns, and only
// `finish_buffer` and `pop_to`, which may, take blocks off the stack.
unsafe impl<A: Arena, L: LockKind> FramePool for Snc<A, L> {
    const OBSERVES_POPS: bool = cfg!(feature = "poison");

    fn top(own: OwnBuffer<'_, Self, StackBuffer>) -> Option<NonNull<u8>> {
        own.kept().top_base()
    }

    unsafe fn pop_within(&self, popped: Block) {
        // SAFETY: nothing uses what was popped.
        unsafe { poison(popped) };
    }

    unsafe fn pop_to(own: OwnBuffer<'_, Self, StackBuffer>, base: Option<NonNull<u8>>) -> Option<Block> {
        let mut land = own.pool().granules.free.lock().ok()?;
        loop {
            let (top, is_lowest) = land.note(StackBuffer::peek(own)).ok()??;
            if is_lowest || Some(top.base()) == base {
                return Some(top);
            }
            // SAFETY: the caller gives up what is above `base`.
            unsafe { Self::take_back(&mut land, own) };
        }
    }
}

impl<A: Arena, L: LockKind> Check for Snc<A, L> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.granules.check(level)
    }
}

impl<A: Arena, L: LockKind> Describe for Snc<A, L> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.granules.header.describe(out, depth)?;
        let (size, count) = {
            let Ok(land) = self.granules.free.lock() else { return Ok(()) };
            (land.size(), land.count())
        };
        line(out, depth + 1, "free", format_args!("{size} bytes in {count} blocks"))?;
        line(out, depth + 1, "extend by", format_args!("{} bytes", self.options.extend_by))?;
        line(out, depth + 1, "fill size", format_args!("{} bytes", self.options.fill_size))
    }
}
