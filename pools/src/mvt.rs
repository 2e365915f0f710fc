//! Manual variable temporal: objects that die in the order they were born.
//!
//! Free memory waits until it has coalesced to a block that serves a whole fill;
//! such blocks are used again oldest first (design/pool-mvt.md `.mvt`).

use core::alloc::Layout;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;

use tripoint_core::{
    Align, Arena, Block, Check, CheckError, CheckLevel, Describe, Error, LockKind, ManualClass, Owned,
    PoolHeader, PoolLock, PoolOptions, PoolSizes, Result, Shared, Store, aver, line,
};

use crate::extend::{Extension, extend_for};
use crate::granules::{FreeMemory, Granules};
use crate::land::{GRANULE, Land};
use crate::poison::poison;
use crate::resize::resize_in_place;
use crate::seal::SEAL_SIZE;
use crate::surplus::surplus_of;

mod free;
mod queue;

use free::FreeBlocks;
use queue::QUEUED_SIZE_MIN;

const TOO_LARGE: Error = Error::Parameter("the size, rounded up to granules, is above isize::MAX");

/// Options for an [`Mvt`]: the arguments of the class in MPS.
#[derive(Clone, Copy, Debug)]
pub struct MvtOptions {
    /// The size of the smallest objects expected, in bytes. Memory that a
    /// buffer returns is used next if it is at least this large, and waits for
    /// its neighbours otherwise. Default: 16.
    pub min_size: usize,
    /// The size of most objects, in bytes. Default: 32.
    pub mean_size: usize,
    /// The size of the largest objects expected, in bytes; rounded up to grains it
    /// is what a fill takes. Larger objects are served too, wherever they fit first.
    /// Default: 8 KiB.
    pub max_size: usize,
    /// How many objects of the mean size the pool keeps memory available for while they are
    /// dead. Available memory above that is returned to the arena, mostly the oldest first,
    /// from at most four blocks per free. Default: 1024.
    pub reserve_depth: usize,
    /// How much of the pool's memory may be free, in percent, before it searches
    /// free memory that is not available instead of extending itself. Default: 30.
    pub fragmentation_limit: u8,
}

impl Default for MvtOptions {
    fn default() -> Self {
        Self { min_size: 16, mean_size: 32, max_size: 8 << 10, reserve_depth: 1024, fragmentation_limit: 30 }
    }
}

impl MvtOptions {
    const fn passed(&self) -> PoolOptions {
        let Self { min_size, mean_size, max_size, reserve_depth, fragmentation_limit } = *self;
        PoolOptions::new([min_size, mean_size, max_size, reserve_depth, fragmentation_limit as usize])
    }

    /// Whether the options make sense together.
    fn validate(&self) -> Result<()> {
        if self.min_size == 0 || self.min_size > self.mean_size || self.mean_size > self.max_size {
            return Err(Error::Parameter("the sizes are not 0 < min <= mean <= max"));
        }
        if self.fragmentation_limit > 100 {
            return Err(Error::Parameter("the fragmentation limit is above 100 percent"));
        }
        Ok(())
    }
}

/// A pool of the class MVT, manual variable temporal.
///
/// Sizes are rounded up to [`GRANULE`], which is also the alignment that objects
/// have without asking. Any alignment is served.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_ap::AllocationPoint;
/// use tripoint_pools::{Mvt, MvtOptions};
///
/// let ticks = Mvt::create(&arena, MvtOptions { mean_size: 48, max_size: 1 << 10, ..Default::default() })?;
/// let mut point = AllocationPoint::create(&ticks)?;
/// let born_first = point.boxed([0_u64; 6])?;
/// let born_last = point.boxed([1_u64; 6])?;
/// drop(born_first); // in the order of birth, as the class likes it
/// assert_eq!(born_last[0], 1);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("temporal", "FIFO", "queue"))]
#[derive(Debug)]
pub struct Mvt<A: Arena, L: LockKind = Shared> {
    options: MvtOptions,
    /// The bytes of a fill, and of the smallest block that is available.
    fill_size: usize,
    /// The bytes of available blocks to keep.
    reserve: usize,
    grain: Align,
    granules: Granules<A, FreeBlocks, L>,
}

impl<A: Arena> Mvt<A> {
    /// Creates a pool in the arena. It takes no memory until it is used.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for sizes that are not `0 < min <= mean <= max`, a
    ///   maximum above `isize::MAX` in grains, a limit above 100 percent, or an
    ///   arena whose grain is below 64 bytes (32 on 32-bit targets)
    /// - those of [`Arena::register`]
    pub fn create(arena: A, options: MvtOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena> Mvt<A, Owned> {
    /// As `create`, for a pool that one thread owns: its calls take no lock, and while it is borrowed it stays in its
    /// thread. See [`Owned`].
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create_owned(arena: A, options: MvtOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena, L: LockKind> Mvt<A, L> {
    fn with_lock(arena: A, options: MvtOptions) -> Result<Self> {
        options.validate()?;
        let grain = Align::new(arena.grain())
            .filter(|grain| grain.get() >= QUEUED_SIZE_MIN)
            .ok_or(Error::Parameter("the arena's grain is too small for a queued block"))?;
        let fill_size = grain
            .round_up(options.max_size)
            .filter(|&size| size <= isize::MAX as usize)
            .ok_or(Error::Parameter("the maximum size, rounded up to grains, is above isize::MAX"))?;
        let reserve = options
            .reserve_depth
            .saturating_mul(options.mean_size)
            .max(RESERVE_MIN.saturating_mul(fill_size));
        let free = |header: &PoolHeader<A>| FreeBlocks::new(header, fill_size);
        let granules = Granules::create(arena, Self::CLASS, options.passed(), free)?;
        Ok(Self { options, fill_size, reserve, grain, granules })
    }

    /// The bytes that one fill takes at most, unless the request needs more.
    pub const fn fill_size(&self) -> usize {
        self.fill_size
    }

    /// The bytes of available blocks that the pool keeps.
    pub const fn reserve(&self) -> usize {
        self.reserve
    }

    /// Takes `size` bytes or more, at most a fill: what was left over last, then
    /// the oldest available block, then, if too much is free or the object is
    /// exceptionally large, what fits first, then new tracts (design/pool-mvt.md
    /// `.mvt.order`).
    ///
    /// What is behind `most` bytes is left over.
    #[inline]
    fn take(&self, size: usize, most: usize, align: Align) -> Result<Block> {
        let found = self.take_free(&mut *self.granules.free.lock()?, size, most, align)?;
        match found {
            Some(block) => Ok(block),
            None => self.take_growing(size, most, align),
        }
    }

    /// [Takes](Mvt::take) from new memory.
    #[cold]
    #[inline(never)]
    fn take_growing(&self, size: usize, most: usize, align: Align) -> Result<Block> {
        let _growing = self.granules.growth.begin()?;
        match self.granules.look_again(|free| self.take_free(free, size, most, align))? {
            Some(found) => Ok(found),
            None => self.take_extending(size, most, align),
        }
    }

    /// [Takes](Mvt::take) from free blocks.
    #[inline]
    fn take_free(
        &self,
        free: &mut FreeBlocks,
        size: usize,
        most: usize,
        align: Align,
    ) -> Result<Option<Block>> {
        free.ensure_sound()?;
        let taken = self.take_trusting(free, size, align);
        free.ensure_sound()?;
        Ok(taken.map(|block| self.cut(free, block, most)))
    }

    /// Leaves over what is behind `most` bytes of a block just taken.
    #[inline]
    fn cut(&self, free: &mut FreeBlocks, block: Block, most: usize) -> Block {
        let Some((kept, rest)) = block.split_at(most) else { return block };
        // SAFETY: the rest of a block just taken, in whole granules.
        unsafe { free.keep(rest, self.options.min_size) };
        kept
    }

    /// [Takes](Mvt::take) from free blocks, whatever is met in them.
    #[inline]
    fn take_trusting(&self, free: &mut FreeBlocks, size: usize, align: Align) -> Option<Block> {
        let most = size.max(self.fill_size);
        let taken = free.take_splinter(size, align).or_else(|| free.take_oldest(size, most, align));
        let exceptional = size > self.fill_size;
        if taken.is_none() && (exceptional || self.is_fragmented(free)) {
            return free.take_first(size, most, align);
        }
        taken
    }

    /// [Takes](Mvt::take) from new tracts, or, if the arena has none, from
    /// wherever it fits first. The caller has [begun to extend](crate::growth::Growth::begin) the pool.
    fn take_extending(&self, size: usize, most: usize, align: Align) -> Result<Block> {
        let max = size.max(self.fill_size);
        let extended = extend_for(&self.granules.header, size, max, align, max);
        let mut free = self.granules.free.lock()?;
        let taken = match extended {
            Ok(Extension { extent, wanted }) => {
                // SAFETY: whole grains, fresh from the arena, whose blocks all point
                // with the provenance of its range.
                let from = unsafe { free.insert(extent) };
                let taken = free.take_range(from, wanted);
                let is_sound = taken.is_some() || free.ensure_sound().is_err();
                aver!(is_sound, "{wanted:?} is not in {from:?}, with the new extent {extent:?}");
                taken.ok_or(Error::Limit)
            }
            Err(error) => {
                free.drop_splinter();
                free.take_first(size, max, align).ok_or(error)
            }
        };
        free.ensure_sound()?;
        Ok(self.cut(&mut free, taken?, most))
    }

    /// Whether so much of the pool is free that it should not grow.
    fn is_fragmented(&self, free: &FreeBlocks) -> bool {
        let limit = u128::from(self.options.fragmentation_limit);
        free.size() as u128 * 100 >= self.granules.header.total() as u128 * limit
    }

    /// Takes whole grains above the reserve out of the oldest available block, or at the
    /// last look out of the largest. A block without a whole grain becomes the newest, so
    /// that it hides no other (design/pool-mvt.md `.mvt.reserve`). One block at a time: the
    /// arena calls event hooks for each, and one that panics leaves the others in the pool.
    fn take_surplus(&self, free: &mut FreeBlocks, looks: &mut Range<usize>) -> Option<Block> {
        for look in looks {
            let excess = free.available().saturating_sub(self.reserve);
            if excess < self.grain.get() {
                return None;
            }
            let is_last = look + 1 == SURPLUS_LOOKS;
            let from = if is_last { free.find_largest() } else { free.oldest() }?;
            match surplus_of(from, excess, self.grain) {
                Some(grains) => return free.take_range(from, grains),
                None => free.renew(from),
            }
        }
        None
    }

    /// Has memory added to the free blocks, and returns surplus to the arena.
    fn receive(&self, add: impl FnOnce(&mut FreeBlocks)) {
        let mut looks = 0..SURPLUS_LOOKS;
        let surplus = {
            let Ok(mut free) = self.granules.free.lock() else { return };
            add(&mut free);
            if free.available() <= self.reserve {
                return;
            }
            self.take_surplus(&mut free, &mut looks)
        };
        // SAFETY: `take_surplus` takes whole grains of the pool out of the free blocks.
        unsafe { self.granules.return_to_arena(surplus, |free| self.take_surplus(free, &mut looks)) };
    }
}

/// How many fills the reserve holds at least: fewer would be of no use.
const RESERVE_MIN: usize = 3;

/// From how many blocks a free returns grains to the arena, at most.
const SURPLUS_LOOKS: usize = 4;

// SAFETY: blocks are taken out of the free blocks before they are handed out, so no two overlap
// and the pool does not touch them. They are aligned as asked and to granules, in base and size,
// and any part of them in whole granules may be freed, by address. Granules are a constant, and
// sizes depend on the layout alone.
unsafe impl<A: Arena, L: LockKind> ManualClass for Mvt<A, L> {
    const CLASS: &'static str = "MVT";
    const SEAL_SIZE: usize = SEAL_SIZE;

    type Arena = A;

    fn header(&self) -> &PoolHeader<A> {
        &self.granules.header
    }

    #[inline]
    fn min_align(&self) -> usize {
        GRANULE
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        Land::granules(layout.size() + SEAL_SIZE)
    }

    fn fill(&self, layout: Layout) -> Result<Block> {
        // Objects have this size together with their seals.
        let size = Land::granules(layout.size()).ok_or(TOO_LARGE)?;
        let block = self.take(size, usize::MAX, Align::of_layout(layout))?;
        // SAFETY: just taken out of the free blocks.
        Ok(unsafe { self.granules.hand_to_buffer(block) })
    }

    unsafe fn empty(&self, unused: Block) {
        // SAFETY: the caller gives up the end of a fill.
        unsafe { poison(unused) };
        // SAFETY: the end of a fill, in whole granules.
        unsafe { self.granules.take_from_buffer(unused) };
        // SAFETY: the end of a fill, in whole granules, which nothing uses any more.
        self.receive(|free| unsafe { free.keep(unused, self.options.min_size) });
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.granules.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        self.granules.sizes()
    }

    #[inline]
    unsafe fn set_aside(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: if there is an object of this size, it is the caller's.
        unsafe { self.granules.set_aside(object, self.reserve_size(layout)) }
    }

    #[inline]
    unsafe fn put_in_use(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the caller set the object aside, which takes that many bytes.
        unsafe { self.granules.put_in_use(object, self.reserve_size(layout)) }
    }

    fn note_damage(&self) {
        self.granules.note_damage();
    }
}

// SAFETY: memory from `alloc` is the front of a block taken as fills are, which is out of the free
// blocks until it is freed. `free` replaces the pointer by one that reaches the same address. The
// free blocks are behind a lock, so any thread that may call the pool may free. Objects are resized as
// `ManualPool` promises, and with a pointer that reaches all of them.
unsafe impl<A: Arena, L: LockKind> Store for Mvt<A, L> {
    /// Allocates as a buffer shared by all callers would, so that objects lie in
    /// the order of their birth.
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.reserve_size(layout).ok_or(TOO_LARGE)?;
        let object = self.take(size, size, Align::of_layout(layout))?;
        // SAFETY: just taken out of the free blocks, in whole granules.
        Ok(unsafe { self.granules.hand_out(object) })
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller frees an object of this pool, which takes the bytes that
        // `reserve_size` says, and does not use it any more.
        if let Some(object) = unsafe { self.granules.take_back(object, self.reserve_size(layout)) } {
            // SAFETY: whole granules of the pool, which the caller gave up; blocks of the pool all
            // point with the provenance of the arena's range.
            self.receive(|free| unsafe {
                free.insert(object);
            });
        }
    }

    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        resize_in_place(self, object, from, to)
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Some(self.granules.header.arena())
    }
}

impl<A: Arena, L: LockKind> Check for Mvt<A, L> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.granules.check(level)
    }
}

impl<A: Arena, L: LockKind> Describe for Mvt<A, L> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.granules.header.describe(out, depth)?;
        // The pool is not locked while `out` writes, which may allocate in this pool.
        let Ok(counts) = self.granules.free.lock().map(|free| free.counts()) else { return Ok(()) };
        counts.describe(out, depth + 1)?;
        line(out, depth + 1, "fill size", format_args!("{} bytes", self.fill_size))?;
        line(out, depth + 1, "reserve", format_args!("{} bytes", self.reserve))?;
        line(
            out,
            depth + 1,
            "fragmentation limit",
            format_args!("{} percent", self.options.fragmentation_limit),
        )
    }
}
