//! Two-level segregated fit: objects of any size, in constant time.
//!
//! Free blocks are in lists by size, and a bit for each granule shows where free
//! blocks begin and end, so that neighbours are found without headers
//! (design/pool-tlsf.md `.tlsf`, `.req.constant`).

use core::alloc::Layout;
use core::fmt;
use core::iter;
use core::ptr::NonNull;

use tripoint_core::{
    Align, Arena, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, LockKind, Magazine,
    ManualPool, Owned, PoolClass, PoolHeader, PoolLock, PoolSizes, Result, Shared, Store, SymmetricFence,
    aver, line,
};

use crate::extend::{Extension, extend, extend_for};
use crate::freed::FreedBlocks;
use crate::granules::{FreeMemory, Granules};
use crate::land::GRANULE;
use crate::poison::poison;
use crate::resize::resize_in_place;
use crate::room::Room;
use crate::runs::divide;
use crate::seal::SEAL_SIZE;

mod check;
mod class;
mod free_memory;
mod heap;
mod lists;
mod node;
mod surplus;

use heap::Heap;
use surplus::insert_returning;

use crate::bins::{Binned, piece_for};
use crate::link::LinkKey;
use crate::sparse_bits::new_node;

const TOO_LARGE: Error = Error::Parameter("the size is above the largest that the class serves");

/// Options for a [`Tlsf`]. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct TlsfOptions {
    /// By how much the pool extends itself, unless a request needs more or the
    /// arena has only what the request needs. Default: 64 KiB.
    pub extend_by: usize,
    /// The most that one fill takes, rounded down to granules, unless the request
    /// needs more. Default: 64 KiB.
    pub fill_size: usize,
    /// How much free memory the pool keeps. If a free leaves more, whole grains of one block are returned to the arena: of
    /// the block that the free made, or else of one of the largest class. Later frees continue with what this one leaves.
    /// The arena's time is added to that of the free. Default: `usize::MAX`, everything, so that what was allocated once can be
    /// allocated again without the arena (design/pool-tlsf.md `.tlsf.spare`).
    pub spare: usize,
    /// How many freed blocks of up to 64 granules wait for an object of their size before they join their neighbours. That makes most
    /// calls quicker; but a request that nothing else serves has them join first, so the bound on the time of a call
    /// is that of that many frees. None wait if `spare` is not `usize::MAX`. Default: 0, each joins at once (design/land.md `.bins`).
    pub bin_blocks: usize,
}

impl Default for TlsfOptions {
    fn default() -> Self {
        Self { extend_by: 64 << 10, fill_size: 64 << 10, spare: usize::MAX, bin_blocks: 0 }
    }
}

/// A pool of the class TLSF, two-level segregated fit: bounded latency.
///
/// `alloc`, `free`, `fill` and `empty` take constant time, however many blocks are
/// free and however scattered; only if the pool has to grow is the arena's time
/// added, and [`Tlsf::extend`] spends that in advance. With [`TlsfOptions::spare`] set, a free that
/// returns memory takes the arena's time too.
///
/// Sizes are rounded up to granules, and above 64 of them to a size class, by at
/// most one part in 32. Any alignment is served; above a granule the request
/// looks for its size and alignment together (design/pool-tlsf.md `.req.any`).
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_core::{PoolBox, PoolClass};
/// use tripoint_pools::{Tlsf, TlsfOptions};
///
/// let commands = Tlsf::create(&arena, TlsfOptions::default())?;
/// commands.extend(64 << 10)?; // at Init: later requests do not grow the pool
/// let total = commands.sizes().total;
/// let command = PoolBox::new_in([0_u8; 1000], &commands)?;
/// assert_eq!(commands.sizes().total, total);
/// drop(command);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("two-level segregated fit", "good fit", "real time"))]
#[derive(Debug)]
pub struct Tlsf<A: Arena, L: LockKind = Shared> {
    options: TlsfOptions,
    /// Whether a block that is freed joins its neighbours, and that is all: none waits in a bin or is returned to the arena.
    joins_only: bool,
    granules: Granules<A, Binned<Heap>, L>,
}

impl<A: Arena> Tlsf<A> {
    /// Creates a pool in the arena. It takes no memory until it is used.
    ///
    /// The value is large, 13 KiB on 64-bit targets: it holds the heads of the lists, and where the bits of 16 MiB are.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for an arena whose grain is below two granules
    /// - those of [`Arena::register`]
    pub fn create(arena: A, options: TlsfOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena> Tlsf<A, Owned> {
    /// As `create`, for a pool that one thread owns: its calls take no lock, and while it is borrowed it stays in its
    /// thread. See [`Owned`].
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create_owned(arena: A, options: TlsfOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena, L: LockKind> Tlsf<A, L> {
    /// The largest allocation, in bytes.
    pub const SIZE_MAX: usize = class::SIZE_MAX - SEAL_SIZE;

    fn with_lock(arena: A, options: TlsfOptions) -> Result<Self> {
        let fill_size = options.fill_size - options.fill_size % GRANULE;
        // What waits is not returned to the arena.
        let bin_blocks = if options.spare == usize::MAX { options.bin_blocks } else { 0 };
        let joins_only = options.spare == usize::MAX && bin_blocks == 0;
        let free = |header: &_| Binned::new(Heap::new(header), bin_blocks, LinkKey::of(header));
        let granules = Granules::create(arena, Self::CLASS, free)?;
        Ok(Self { options: TlsfOptions { fill_size, bin_blocks, ..options }, joins_only, granules })
    }

    /// Gets `size` bytes, rounded up to grains, from the arena ahead of use, so
    /// that later requests find them without it. Frees return what is above [`TlsfOptions::spare`].
    ///
    /// # Errors
    /// Those of [`Arena::alloc_tracts`] and [`Arena::alloc_descriptor`].
    pub fn extend(&self, size: usize) -> Result<()> {
        let _growing = self.granules.begin_growth()?;
        FreeMemory::ensure_sound(&*self.granules.free.lock()?)?;
        let extent = extend(&self.granules.header, size, 0)?;
        self.cover(extent)?;
        // SAFETY: whole grains, fresh from the arena, whose blocks all have the
        // provenance of its range; the extent is covered.
        unsafe { self.granules.free.lock()?.memory().insert(extent) }?;
        Ok(())
    }

    /// The bytes of the arena's descriptor memory that the pool uses to find the
    /// neighbours of blocks: not part of [`PoolSizes::total`].
    pub fn map_size(&self) -> usize {
        self.granules.free.lock().map_or(0, |mut free| free.memory().edges.size())
    }

    /// Gets the bits for a new extent, or returns the extent. The caller has [begun to extend](Granules::begin_growth) the pool,
    /// so there is one call at a time.
    fn cover(&self, extent: Block) -> Result<()> {
        self.fill_gaps(extent).inspect_err(|_| {
            // SAFETY: just got from the arena, and unused.
            unsafe { self.granules.header.retract(extent) };
        })
    }

    /// Gets the bits that are missing for an extent. The heap is not locked while the arena is asked.
    fn fill_gaps(&self, extent: Block) -> Result<()> {
        let mut rest = extent.range();
        loop {
            let gap = self.granules.free.lock()?.memory().edges.find_gap(&mut rest)?;
            let Some(gap) = gap else { return Ok(()) };
            let node = new_node(&self.granules.header)?;
            self.granules.free.lock()?.memory().edges.fill(gap, node);
        }
    }

    /// Takes `min..=max` bytes from the heap, or else from the heap that all blocks have joined.
    #[inline]
    fn take(free: &mut Binned<Heap>, min: usize, max: usize, align: Align) -> Result<Option<Block>> {
        let taken = free.memory().take(min, max, align)?;
        if taken.is_some() || free.is_settled() {
            Ok(taken)
        } else {
            Self::take_settling(free, min, max, align)
        }
    }

    /// Adds blocks to the heap, and returns surplus memory to the arena.
    ///
    /// # Safety
    /// - The blocks are whole granules of the pool, which nothing uses any more, and none overlaps another.
    unsafe fn insert(&self, blocks: impl Iterator<Item = Block>) {
        if self.options.spare != usize::MAX {
            // SAFETY: whole granules of the pool, none in two blocks, which the caller gives up.
            return unsafe { insert_returning(&self.granules, self.options.spare, blocks) };
        }
        let Ok(mut free) = self.granules.free.lock() else { return };
        for block in blocks {
            // SAFETY: whole granules of the pool, none in two blocks, which the caller gives up; all memory of the pool is
            // covered. After damage the block is lost: returning memory has no error.
            let _ = unsafe { free.memory().insert(block) };
        }
    }

    /// Adds a block that was freed: to its bin, if there are bins, or else to the heap. After damage it is lost: freeing has no error.
    ///
    /// # Safety
    /// - As [`Tlsf::insert`].
    #[inline]
    unsafe fn put(&self, block: Block) {
        if self.joins_only {
            if let Ok(mut free) = self.granules.free.lock() {
                // SAFETY: whole granules of the pool, which the caller gives up.
                let _ = unsafe { free.memory().insert(block) };
            }
        } else {
            // SAFETY: whole granules of the pool, which the caller gives up.
            unsafe { self.put_in_bin_or_return(block) };
        }
    }

    /// # Safety
    /// - As [`Tlsf::insert`].
    #[inline(never)]
    unsafe fn put_in_bin_or_return(&self, object: Block) {
        if self.options.bin_blocks == 0 {
            // SAFETY: whole granules of the pool, which the caller gives up.
            return unsafe { self.insert(iter::once(object)) };
        }
        let Ok(mut free) = self.granules.free.lock() else { return };
        // SAFETY: whole granules of the pool, which the caller gives up. Nothing is surplus: there are bins only if the
        // pool keeps everything.
        unsafe { free.put(object) };
    }

    #[cold]
    #[inline(never)]
    fn take_settling(free: &mut Binned<Heap>, min: usize, max: usize, align: Align) -> Result<Option<Block>> {
        Ok(free.settled_for(piece_for(min, align)).take(min, max, align)?)
    }

    /// Takes `min..=max` bytes from new memory.
    #[cold]
    #[inline(never)]
    fn take_growing(&self, min: usize, max: usize, align: Align) -> Result<Block> {
        let _growing = self.granules.begin_growth()?;
        match self.granules.look_again(|free| Self::take(free, min, max, align))? {
            Some(found) => Ok(found),
            None => self.take_extending(min, max, align),
        }
    }

    /// Takes `min..=max` bytes from a new extent, whose rest is free from now on.
    fn take_extending(&self, min: usize, max: usize, align: Align) -> Result<Block> {
        let Extension { extent, wanted } =
            extend_for(&self.granules.header, min, max, align, self.options.extend_by)?;
        self.cover(extent)?;
        let offset = wanted.base().get() - extent.range().base().get();
        aver!(offset + wanted.size() <= extent.size(), "{wanted:?} is not in the new extent {extent:?}");
        let (front, rest) = extent.split_at(offset).ok_or(Error::Limit)?;
        let (given, back) = rest.split_at(wanted.size()).ok_or(Error::Limit)?;
        let mut free = self.granules.free.lock()?;
        for left in [front, back].into_iter().filter(|left| left.size() != 0) {
            // SAFETY: granules of an extent fresh from the arena, whose blocks all
            // have the provenance of its range; the extent is covered.
            unsafe { free.memory().insert(left) }?;
        }
        Ok(given)
    }
}

// SAFETY: blocks are taken out of the heap before they are handed out, so no two overlap and the
// pool does not touch them. The heap aligns them as asked and to granules, in base and size, and
// takes back any part of them in whole granules, by address. Granules are a constant, and sizes
// depend on the layout alone.
unsafe impl<A: Arena, L: LockKind> PoolClass for Tlsf<A, L> {
    const CLASS: &'static str = "TLSF";
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = SEAL_SIZE;

    type Arena = A;
    type Barrier = SymmetricFence;
    type Buffer = FreedBlocks;

    fn new_buffer(&self) -> FreedBlocks {
        FreedBlocks::none(LinkKey::of(&self.granules.header))
    }

    #[inline(always)]
    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    #[inline(always)]
    fn header(&self) -> &PoolHeader<A> {
        &self.granules.header
    }

    #[inline]
    fn min_align(&self) -> usize {
        GRANULE
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        class::round_up(layout.size() + SEAL_SIZE)
    }

    /// Returns a block that holds a whole fill, or else the largest, so that small
    /// holes do not make small fills (design/pool-tlsf.md `.tlsf.fill`).
    fn fill(&self, layout: Layout) -> Result<Fill> {
        // Objects have this size together with their seals.
        let size = class::round_up(layout.size()).ok_or(TOO_LARGE)?;
        let align = Align::of_layout(layout);
        let most = size.max(self.options.fill_size);
        let mut free = self.granules.free.lock()?;
        let heap = free.settled_for(most);
        let ample = class::least_size(class::class_of(most)).min(heap.largest());
        let found = if ample > size
            && let Some(block) = heap.take(ample, most, align)?
        {
            Some(block)
        } else {
            Self::take(&mut free, size, most, align)?
        };
        drop(free);
        let block = match found {
            Some(block) => block,
            None => self.take_growing(size, most, align)?,
        };
        // SAFETY: just taken out of the heap.
        Ok(unsafe { self.granules.hand_to_buffer(block) }.into())
    }

    /// As `fill`, after what the buffer's owner freed has joined its neighbours: none of it serves the next object. If
    /// there is no large block, several small ones are taken under one lock, and wait in the buffer
    /// (design/pool-tlsf.md `.tlsf.waiting`).
    unsafe fn fill_buffer(&self, buffer: &FreedBlocks, layout: Layout) -> Result<Fill> {
        // SAFETY: the caller is the buffer's owner.
        unsafe { self.flush_buffer(buffer) };
        // Objects have this size together with their seals.
        let (size, align) = (class::round_up(layout.size()).ok_or(TOO_LARGE)?, Align::of_layout(layout));
        let (granules, fill_size) = (&self.granules, self.options.fill_size);
        let take_units = |heap: &mut Heap, count| heap.take_units_together(size, count).ok().flatten();
        // SAFETY: the caller is the buffer's owner. The size is whole granules, and so is what is taken.
        let block = unsafe { granules.fill_with_several(buffer, size, align, fill_size, take_units) }?;
        if let Some(block) = block {
            return Ok(block.into());
        }
        self.fill(layout)
    }

    #[inline(always)]
    unsafe fn next_run(&self, buffer: &FreedBlocks, layout: Layout) -> Option<Block> {
        // SAFETY: the caller is the buffer's owner.
        unsafe { self.granules.next_run(buffer, layout) }
    }

    unsafe fn empty_buffer(&self, buffer: &FreedBlocks, unused: Block) {
        // SAFETY: what waits is whole granules of the pool, which nothing uses.
        let put = |block| unsafe { self.put(block) };
        // SAFETY: the caller returns the end of a fill or of a run.
        let empty = |unused| unsafe { self.empty(unused) };
        // SAFETY: the caller is the buffer's owner.
        unsafe { self.granules.empty_buffer(buffer, unused, put, empty) };
    }

    unsafe fn flush_buffer(&self, buffer: &FreedBlocks) {
        // SAFETY: the caller is the buffer's owner. What it freed is whole granules of the pool, which nothing uses.
        unsafe { self.granules.flush_buffer(buffer, |block| self.put(block)) };
    }

    unsafe fn finish_buffer(&self, buffer: &FreedBlocks) -> bool {
        // SAFETY: the caller was the buffer's owner, and still has it to itself.
        unsafe { self.granules.finish_buffer(buffer) };
        false
    }

    unsafe fn empty(&self, unused: Block) {
        if unused.size() != 0 {
            // SAFETY: the caller gives the block up.
            unsafe { poison(unused) };
            // SAFETY: the end of a fill, in whole granules.
            unsafe { self.granules.take_from_buffer(unused) };
            // SAFETY: the end of a fill, in whole granules, which the caller returns.
            unsafe { self.insert(iter::once(unused)) };
        }
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.granules.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        self.granules.sizes()
    }
}

// SAFETY: never flippable. Objects of buffers are whole granules, which any thread may free as those of `alloc`, which are
// taken as fills are; so are those that are allocated in what a buffer keeps, which leave it before they are handed out.
// Objects that take the same room may become each other in place.
unsafe impl<A: Arena, L: LockKind> ManualPool for Tlsf<A, L> {
    const KEEPS_FREED: bool = true;

    /// Keeps small blocks in the buffer, up to a number (design/pool-mvff.md `.mvff.freed`).
    #[inline]
    unsafe fn free_in_buffer(&self, buffer: &FreedBlocks, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller frees an object of this pool, which takes the bytes that `reserve_size` says, and does not
        // use it any more. It is the buffer's owner.
        if let Some(object) = unsafe { self.granules.keep_freed(buffer, object, self.reserve_size(layout)) } {
            // SAFETY: whole granules of the pool, which the caller gave up.
            unsafe { self.put(object) };
        }
    }

    #[inline(always)]
    unsafe fn alloc_in_buffer(&self, buffer: &FreedBlocks, layout: Layout) -> Option<NonNull<u8>> {
        let (size, align) = (self.reserve_size(layout)?, Align::of_layout(layout));
        // SAFETY: the caller is the buffer's owner.
        let object = unsafe { self.granules.take_kept(buffer, size, align) }?;
        // SAFETY: whole granules, just taken out of what the buffer keeps.
        Some(unsafe { self.granules.hand_out(object) })
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

// SAFETY: memory from `alloc` is taken out of the heap as fills are, and stays out until it is
// freed. `free` replaces the pointer by one that reaches the same address. The heap is behind a
// lock, so any thread that may call the pool may free. Objects are resized as
// `ManualPool` promises, and with a pointer that reaches all of them.
unsafe impl<A: Arena, L: LockKind> Store for Tlsf<A, L> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.reserve_size(layout).ok_or(TOO_LARGE)?;
        let align = Align::of_layout(layout);
        let found = {
            let mut free = self.granules.free.lock()?;
            match free.take_waiting(size, align) {
                None => Self::take(&mut free, size, size, align)?,
                object => object,
            }
        };
        let object = match found {
            Some(object) => object,
            None => self.take_growing(size, size, align)?,
        };
        // SAFETY: just taken out of the heap, in whole granules.
        Ok(unsafe { self.granules.hand_out(object) })
    }

    /// Adds objects that lie together, as far as free blocks allow, under one lock.
    fn alloc_many(&self, layout: Layout, magazine: &mut Magazine) {
        let Some(size) = self.reserve_size(layout) else { return };
        let align = Align::of_layout(layout);
        let Ok(mut free) = self.granules.free.lock() else { return };
        while magazine.room() != 0 {
            let heap = free.memory();
            let run = if align.get() > GRANULE {
                heap.take(size, size, align)
            } else {
                heap.take_units(size, magazine.room())
            };
            let Ok(run) = run else { return };
            let Some(run) = run else {
                if free.is_settled() {
                    return;
                }
                free.settled_for(piece_for(size, align));
                continue;
            };
            // SAFETY: just taken out of the heap, in whole granules.
            divide(run, size, magazine, |object| unsafe { self.granules.hand_out(object) });
        }
    }

    unsafe fn free_many(&self, layout: Layout, magazine: &mut Magazine) {
        // SAFETY: the caller frees objects of this pool, which take the bytes that `reserve_size` says.
        let mut runs = unsafe { self.granules.take_back_all(magazine, self.reserve_size(layout)) };
        // To sort takes about as long as the inserts of blocks that touch none.
        if runs.lie_together() {
            runs.sort();
        }
        // SAFETY: whole granules of the pool, which the caller gave up.
        unsafe { self.insert(runs) };
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller frees an object of this pool, which takes the bytes that
        // `reserve_size` says, and does not use it any more.
        if let Some(object) = unsafe { self.granules.take_back(object, self.reserve_size(layout)) } {
            // SAFETY: whole granules of the pool, which the caller gave up.
            unsafe { self.put(object) };
        }
    }

    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        resize_in_place(self, object, from, to)
    }

    unsafe fn resize_room(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        if let Some(object) = resize_in_place(self, object, from, to) {
            return Some(object);
        }
        let room = Room::changed(self, from, to)?;
        // SAFETY: the granules before the limit are the caller's object, which the arena's pointer reaches.
        let take =
            |free: &mut Binned<Heap>, limit, size| unsafe { free.memory().take_at(limit, size) }.ok()?;
        // Nothing is returned to the arena (design/land.md `.room.spare`).
        let put = |tail| {
            if let Ok(mut free) = self.granules.free.lock() {
                // SAFETY: whole granules of the pool, which are in no object. After damage they are lost, as if freed.
                let _ = unsafe { free.memory().insert(tail) };
            }
        };
        // SAFETY: an object of this pool, which takes the bytes that `reserve_size` says. The heap takes exactly the
        // bytes that are asked for out of what is free.
        unsafe { self.granules.resize_room(object, room, take, put) }
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Some(self.granules.header.arena())
    }
}

impl<A: Arena, L: LockKind> Drop for Tlsf<A, L> {
    fn drop(&mut self) {
        let Granules { free, header, .. } = &mut self.granules;
        free.get_mut().memory().edges.destroy(header);
    }
}

impl<A: Arena, L: LockKind> Check for Tlsf<A, L> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.granules.check(level)
    }
}

impl<A: Arena, L: LockKind> Describe for Tlsf<A, L> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.granules.header.describe(out, depth)?;
        let (size, largest, map, levels) = {
            let Ok(mut free) = self.granules.free.lock() else { return Ok(()) };
            let heap = free.settled();
            (heap.size(), heap.largest(), heap.edges.size(), heap.edges.levels())
        };
        line(out, depth + 1, "free", format_args!("{size} bytes"))?;
        line(out, depth + 1, "largest free", format_args!("{largest} bytes"))?;
        line(out, depth + 1, "map", format_args!("{map} bytes, {levels} levels of directories"))?;
        line(out, depth + 1, "extend by", format_args!("{} bytes", self.options.extend_by))?;
        line(out, depth + 1, "fill size", format_args!("{} bytes", self.options.fill_size))
    }
}
