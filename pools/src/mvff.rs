//! Manual variable first fit: objects of any size, freed in any order.
//!
//! All free memory is one [`Land`], with bins in front of it, under one lock (design/pool-mvff.md `.mvff`).

use core::alloc::Layout;
use core::fmt;
use core::iter;
use core::ptr::NonNull;

use tripoint_core::{
    Addr, AddrRange, Align, Arena, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, LockKind,
    Magazine, ManualPool, Owned, PoolClass, PoolHeader, PoolLock, PoolSizes, Result, Shared, Store,
    SymmetricFence, aver, line,
};

use crate::bins::{Binned, piece_for};
use crate::freed::FreedBlocks;
use crate::granules::{FreeMemory, Granules};
use crate::land::{GRANULE, Land};
use crate::link::LinkKey;
use crate::poison::poison;
use crate::resize::resize_in_place;
use crate::room::Room;
use crate::runs::divide;
use crate::seal::SEAL_SIZE;
use crate::surplus::surplus_of;

const TOO_LARGE: Error = Error::Parameter("the size, rounded up to granules, is above isize::MAX");

/// Options for an [`Mvff`]. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct MvffOptions {
    /// By how much the pool extends itself, unless a request needs more or the
    /// arena has only what the request needs. Default: 64 KiB.
    pub extend_by: usize,
    /// The most that one fill takes, rounded down to granules, unless the request
    /// needs more. Default: 64 KiB.
    pub fill_size: usize,
    /// How much free memory the pool keeps. If a free leaves more, whole grains are returned to
    /// the arena: first of the block that the free made, then of the largest block. Later
    /// frees continue with what this one leaves. Default: `usize::MAX`, everything, so that
    /// what was allocated once can be allocated again without the arena
    /// (design/pool-mvff.md `.req.steady`).
    pub spare: usize,
    /// How many freed blocks of up to 64 granules wait for an object of their size before they join their neighbours. A request
    /// that nothing else serves has them join first, which takes at most the time of that many frees; so does reading the sizes of the
    /// pool. None wait if this is zero, or if `spare` is not `usize::MAX`. Default: 2,048 (design/land.md `.bins`).
    pub bin_blocks: usize,
}

impl Default for MvffOptions {
    fn default() -> Self {
        Self { extend_by: 64 << 10, fill_size: 64 << 10, spare: usize::MAX, bin_blocks: 2048 }
    }
}

/// A pool of the class MVFF, manual variable first fit.
///
/// Sizes are rounded up to [`GRANULE`], which is also the alignment that objects
/// have without asking. Any alignment is served (design/pool-mvff.md `.req.any`).
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_core::{PoolBox, PoolClass};
/// use tripoint_pools::{Mvff, MvffOptions};
///
/// let messages = Mvff::create(&arena, MvffOptions::default())?;
/// let (short, long) = (PoolBox::new_in([0_u8; 20], &messages)?, PoolBox::new_in([0_u8; 3000], &messages)?);
/// drop(short);
/// drop(long);
/// assert_eq!(messages.sizes().fragmentation(), 0); // neighbours coalesced
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("first fit", "heap"))]
#[derive(Debug)]
pub struct Mvff<A: Arena, L: LockKind = Shared> {
    options: MvffOptions,
    pub(crate) granules: Granules<A, Binned<Land>, L>,
}

impl<A: Arena> Mvff<A> {
    /// Creates a pool in the arena. It takes no memory until it is used.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for an arena whose grain is below two granules
    /// - those of [`Arena::register`]
    pub fn create(arena: A, options: MvffOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena> Mvff<A, Owned> {
    /// As `create`, for a pool that one thread owns: its calls take no lock, and while it is borrowed it stays in its
    /// thread. See [`Owned`].
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create_owned(arena: A, options: MvffOptions) -> Result<Self> {
        Self::with_lock(arena, options)
    }
}

impl<A: Arena, L: LockKind> Mvff<A, L> {
    fn with_lock(arena: A, options: MvffOptions) -> Result<Self> {
        let fill_size = options.fill_size - options.fill_size % GRANULE;
        // What waits is not returned to the arena.
        let bin_blocks = if options.spare == usize::MAX { options.bin_blocks } else { 0 };
        let free = |header: &_| Binned::new(Land::new(header), bin_blocks, LinkKey::of(header));
        let granules = Granules::create(arena, Self::CLASS, free)?;
        Ok(Self { options: MvffOptions { fill_size, bin_blocks, ..options }, granules })
    }

    /// Takes `min..=max` bytes from the land, or else from the land that all blocks have joined.
    fn take(free: &mut Binned<Land>, min: usize, max: usize, align: Align) -> Option<Block> {
        let taken = free.memory().take_first_bounded(min, max, align);
        if taken.is_some() || free.is_settled() {
            return taken;
        }
        free.settled_for(piece_for(min, align)).take_first_bounded(min, max, align)
    }

    /// Takes `min..=max` bytes from new memory.
    #[cold]
    #[inline(never)]
    fn take_growing(&self, min: usize, max: usize, align: Align) -> Result<Block> {
        let _growing = self.granules.begin_growth()?;
        match self.granules.look_again(|free| Ok(Self::take(free, min, max, align)))? {
            Some(found) => Ok(found),
            None => self.granules.take_extending(Binned::memory, min, max, align, self.options.extend_by),
        }
    }

    /// Adds up to `N` blocks to the land, and returns surplus memory to the arena.
    ///
    /// # Safety
    /// - Each block was taken from this pool and is whole granules. Nothing uses it any more.
    unsafe fn insert<const N: usize>(&self, blocks: impl Iterator<Item = Block>) {
        let (mut sources, surplus);
        {
            let Ok(mut free) = self.granules.free.lock() else { return };
            let land = free.memory();
            let mut made = [None; N];
            for (made, block) in made.iter_mut().zip(blocks) {
                // SAFETY: whole granules of the pool, which the caller gives up; blocks of the pool
                // all point with the provenance of the arena's range.
                *made = Some(unsafe { land.insert(block) });
            }
            if land.size() <= self.options.spare {
                return;
            }
            sources = made.into_iter().filter(Option::is_some).chain(iter::once(None));
            surplus = self.take_surplus(land, &mut sources);
        }
        // SAFETY: `take_surplus` takes whole grains of the pool's tracts out of the land.
        unsafe {
            self.granules.return_to_arena(surplus, |free| self.take_surplus(free.memory(), &mut sources))
        };
    }

    /// Adds a freed block to its bin, or to the land.
    ///
    /// # Safety
    /// - The block was taken from this pool and is whole granules. Nothing uses it any more.
    unsafe fn put(&self, block: Block) {
        if self.options.bin_blocks == 0 {
            // SAFETY: whole granules of the pool, which the caller gives up.
            return unsafe { self.insert::<1>(iter::once(block)) };
        }
        let Ok(mut free) = self.granules.free.lock() else { return };
        // SAFETY: whole granules of the pool, which the caller gives up. Nothing is surplus: there are bins only if the
        // pool keeps everything.
        unsafe { free.put(block) };
    }

    /// Takes out whole grains that the pool does not need to keep. They are of the first of
    /// `sources` that has any; `None` there stands for the largest block. One block at a
    /// time: the arena calls event hooks for each, and one that panics leaves the others in
    /// the land (design/pool-mvff.md `.mvff.spare`).
    fn take_surplus(
        &self,
        land: &mut Land,
        sources: &mut impl Iterator<Item = Option<Block>>,
    ) -> Option<Block> {
        sources.find_map(|made| self.take_surplus_of(land, |land| made.or_else(|| land.find_largest())))
    }

    fn take_surplus_of(&self, land: &mut Land, find: impl Fn(&Land) -> Option<Block>) -> Option<Block> {
        let grain = Align::new(self.granules.header.arena().grain());
        aver!(
            grain.is_some(),
            "the grain of {} bytes is no power of two",
            self.granules.header.arena().grain()
        );
        let grain = grain?;
        let excess = land.size().checked_sub(self.options.spare)?;
        if excess.min(land.largest()) < grain.get() {
            return None;
        }
        land.take_range(surplus_of(find(land)?, excess, grain)?)
    }
}

// SAFETY: blocks are taken out of the land before they are handed out, so no two overlap and the
// pool does not touch them. The land aligns them as asked and to granules, in base and size, and
// takes back any part of them in whole granules, by address. Granules are a constant, and sizes
// depend on the layout alone.
unsafe impl<A: Arena, L: LockKind> PoolClass for Mvff<A, L> {
    const CLASS: &'static str = "MVFF";
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
        Land::granules(layout.size() + SEAL_SIZE)
    }

    /// Returns the first block that holds a whole fill, or else a part of the
    /// largest, so that small holes do not make small fills (design/pool-mvff.md
    /// `.mvff.fill`).
    fn fill(&self, layout: Layout) -> Result<Fill> {
        // Objects have this size together with their seals.
        let size = Land::granules(layout.size()).ok_or(TOO_LARGE)?;
        let align = Align::of_layout(layout);
        let most = size.max(self.options.fill_size);
        let mut free = self.granules.free.lock()?;
        let land = free.settled_for(most);
        let ample = most.min(land.largest());
        let found = if ample > size
            && let Some(block) = land.take_first_bounded(ample, most, align)
        {
            Some(block)
        } else {
            Self::take(&mut free, size, most, align)
        };
        drop(free);
        let block = match found {
            Some(block) => block,
            None => self.take_growing(size, most, align)?,
        };
        // SAFETY: just taken out of the land.
        Ok(unsafe { self.granules.hand_to_buffer(block) }.into())
    }

    /// As `fill`, after what the buffer's owner freed has joined its neighbours: none of it serves the next object. If
    /// there is no large block, several small ones are taken under one lock, and wait in the buffer
    /// (design/pool-mvff.md `.mvff.waiting`).
    unsafe fn fill_buffer(&self, buffer: &FreedBlocks, layout: Layout) -> Result<Fill> {
        // SAFETY: the caller is the buffer's owner.
        unsafe { self.flush_buffer(buffer) };
        // Objects have this size together with their seals.
        let (size, align) = (Land::granules(layout.size()).ok_or(TOO_LARGE)?, Align::of_layout(layout));
        let (granules, fill_size) = (&self.granules, self.options.fill_size);
        let take_units = |land: &mut Land, count| land.take_units(size, count);
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
        if unused.size() == 0 {
            return;
        }
        // SAFETY: nothing uses the block any more: the caller returns the end of a fill.
        unsafe { poison(unused) };
        // SAFETY: the end of a fill, in whole granules.
        unsafe { self.granules.take_from_buffer(unused) };
        // SAFETY: the end of a fill, in whole granules, which the caller gives up.
        unsafe { self.insert::<1>(iter::once(unused)) };
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
unsafe impl<A: Arena, L: LockKind> ManualPool for Mvff<A, L> {
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

// SAFETY: memory from `alloc` is taken out of the land as fills are, and stays out until it is
// freed. `free` replaces the pointer by one that reaches the same address. The land is behind a
// lock, so any thread that may call the pool may free. Objects are resized as
// `ManualPool` promises, and with a pointer that reaches all of them.
unsafe impl<A: Arena, L: LockKind> Store for Mvff<A, L> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.reserve_size(layout).ok_or(TOO_LARGE)?;
        let align = Align::of_layout(layout);
        let found = {
            let mut free = self.granules.free.lock()?;
            free.take_waiting(size, align).or_else(|| Self::take(&mut free, size, size, align))
        };
        let object = match found {
            Some(object) => object,
            None => self.take_growing(size, size, align)?,
        };
        // SAFETY: just taken out of the land, in whole granules.
        Ok(unsafe { self.granules.hand_out(object) })
    }

    /// Adds objects that lie together, as far as free blocks allow, under one lock.
    fn alloc_many(&self, layout: Layout, magazine: &mut Magazine) {
        let Some(size) = self.reserve_size(layout) else { return };
        let align = Align::of_layout(layout);
        let Ok(mut free) = self.granules.free.lock() else { return };
        while magazine.room() != 0 {
            let land = free.memory();
            let run = if align.get() > GRANULE {
                land.take_first_bounded(size, size, align)
            } else {
                land.take_units(size, magazine.room())
            };
            let Some(run) = run else {
                // After damage nothing is found, and nothing joins.
                if free.is_settled() || free.ensure_sound().is_err() {
                    return;
                }
                free.settled_for(piece_for(size, align));
                continue;
            };
            // SAFETY: just taken out of the land, in whole granules.
            divide(run, size, magazine, |object| unsafe { self.granules.hand_out(object) });
        }
    }

    unsafe fn free_many(&self, layout: Layout, magazine: &mut Magazine) {
        // SAFETY: the caller frees objects of this pool, which take the bytes that `reserve_size` says.
        let mut runs = unsafe { self.granules.take_back_all(magazine, self.reserve_size(layout)) };
        // An insert takes longer than to sort one block in.
        runs.sort();
        // SAFETY: whole granules of the pool, which the caller gave up.
        unsafe { self.insert::<{ Magazine::MAX }>(runs) };
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller frees an object of this pool, which takes the bytes that
        // `reserve_size` says, and does not use it any more.
        let Some(object) = (unsafe { self.granules.take_back(object, self.reserve_size(layout)) }) else {
            return;
        };
        // SAFETY: whole granules of the pool, which the caller gave up.
        unsafe { self.put(object) };
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
        let take = |free: &mut Binned<Land>, limit: NonNull<u8>, size| {
            free.memory().take_range(AddrRange::with_size(Addr::of(limit.as_ptr()), size)?)
        };
        // Nothing is returned to the arena, whose hook may unwind: then the caller would not know the object's layout.
        let put = |tail| {
            if let Ok(mut free) = self.granules.free.lock() {
                // SAFETY: whole granules of the pool, which are in no object.
                let _ = unsafe { free.memory().insert(tail) };
            }
        };
        // SAFETY: an object of this pool, which takes the bytes that `reserve_size` says. The land takes exactly the
        // bytes that are asked for out of what is free.
        unsafe { self.granules.resize_room(object, room, take, put) }
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Some(self.granules.header.arena())
    }
}

impl<A: Arena, L: LockKind> Check for Mvff<A, L> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.granules.check(level)
    }
}

impl<A: Arena, L: LockKind> Describe for Mvff<A, L> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.granules.header.describe(out, depth)?;
        let (size, count, largest) = {
            let Ok(mut free) = self.granules.free.lock() else { return Ok(()) };
            let land = free.settled();
            (land.size(), land.count(), land.largest())
        };
        line(out, depth + 1, "free", format_args!("{size} bytes in {count} blocks"))?;
        line(out, depth + 1, "largest free", format_args!("{largest} bytes"))?;
        line(out, depth + 1, "extend by", format_args!("{} bytes", self.options.extend_by))?;
        line(out, depth + 1, "fill size", format_args!("{} bytes", self.options.fill_size))
    }
}
