//! The protocols of pools: filling buffers, allocating and freeing, and what a pool says of itself.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Align, Arena, Block, BufferClass as _, Check, CheckError, CheckLevel, Describe, Fill, GivesWay,
    KeepsInBuffer, LockKind, Magazine, ManualPool, OwnBuffer, PoolClass, PoolHeader, PoolLock, PoolSizes,
    Result, Store, SymmetricFence, line,
};

use super::Variable;
use super::bins::piece_for;
use super::fit::FitMemory;
use super::freed::FreedBlocks;
use super::room::Room;
use super::runs::divide;
use crate::granules::FreeMemory;
use crate::land::GRANULE;
use crate::link::LinkKey;
use crate::resize::resize_in_place;
use crate::seal::SEAL_SIZE;

impl<A: Arena, F: FitMemory, L: LockKind> KeepsInBuffer for Variable<A, F, L> {
    const KEEPS_FREED: bool = true;

    type Buffer = FreedBlocks;

    fn new_buffer(&self) -> FreedBlocks {
        FreedBlocks::none(LinkKey::of(&self.granules.header))
    }

    /// First joins what the buffer's owner freed to its neighbours: none of it serves the next object. If
    /// there is no large block, several small ones are taken under one lock, and wait in the buffer
    /// (design/pool-mvff.md `.mvff.waiting`, design/pool-tlsf.md `.tlsf.waiting`).
    #[inline(always)]
    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, FreedBlocks>, layout: Layout) -> Result<Option<Fill>> {
        Self::put_freed(own);
        // Objects have this size together with their seals.
        let (size, align) = (F::size_for(layout.size()).ok_or(F::TOO_LARGE)?, Align::of_layout(layout));
        // SAFETY: the size is whole granules.
        Ok(unsafe { Self::fill_with_several(own, size, align) }?.map(Fill::from))
    }

    #[inline(always)]
    fn next_run(own: OwnBuffer<'_, Self, FreedBlocks>, layout: Layout) -> Option<Block> {
        Self::take_waiting(own, layout)
    }

    #[inline(always)]
    unsafe fn empty_buffer(own: OwnBuffer<'_, Self, FreedBlocks>, unused: Block) -> Option<Block> {
        if own.kept().waiting() == 0 {
            return Some(unused);
        }
        // SAFETY: the caller returns the end of the run that the buffer had last.
        unsafe { Self::put_waiting(own, unused) };
        None
    }

    fn flush_buffer(own: OwnBuffer<'_, Self, FreedBlocks>) {
        Self::put_freed(own);
    }

    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, FreedBlocks>) -> bool {
        Self::join_freed(own);
        false
    }

    /// Keeps small blocks in the buffer, up to a number (design/pool-mvff.md `.mvff.freed`).
    #[inline(always)]
    unsafe fn free_in_buffer(own: OwnBuffer<'_, Self, FreedBlocks>, object: NonNull<u8>, layout: Layout) {
        let this = own.pool();
        // SAFETY: the caller frees an object of this pool, which takes the bytes that `reserve_size` says, and does not
        // use it any more.
        if let Some(object) = unsafe { Self::keep_freed(own, object, this.reserve_size(layout)) } {
            // SAFETY: whole granules of the pool, which the caller gave up.
            unsafe { this.put_apart(object) };
        }
    }

    #[inline(always)]
    fn alloc_in_buffer(own: OwnBuffer<'_, Self, FreedBlocks>, layout: Layout) -> Option<NonNull<u8>> {
        let (size, align) = (own.pool().reserve_size(layout)?, Align::of_layout(layout));
        let object = Self::take_kept(own, size, align)?;
        // SAFETY: whole granules, just taken out of what the buffer keeps.
        Some(unsafe { own.pool().granules.hand_out(object) })
    }
}

impl<A: Arena, F: FitMemory, L: LockKind> GivesWay for Variable<A, F, L> {}

// SAFETY: blocks are taken out of the free memory before they are handed out, so no two overlap and the
// pool does not touch them. The free memory aligns them as asked and to granules, in base and size, and
// takes back any part of them in whole granules, by address. Granules are a constant, and sizes
// depend on the layout alone.
unsafe impl<A: Arena, F: FitMemory, L: LockKind> PoolClass for Variable<A, F, L> {
    const CLASS: &'static str = F::CLASS;
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = SEAL_SIZE;

    type Arena = A;
    type Barrier = SymmetricFence;

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

    #[inline(always)]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        F::size_for(layout.size() + SEAL_SIZE)
    }

    /// Returns a block that holds a whole fill, or else a part of the largest, so that small holes do not make
    /// small fills (design/pool-mvff.md `.mvff.fill`, design/pool-tlsf.md `.tlsf.fill`).
    fn fill(&self, layout: Layout) -> Result<Fill> {
        // Objects have this size together with their seals.
        let size = F::size_for(layout.size()).ok_or(F::TOO_LARGE)?;
        let align = Align::of_layout(layout);
        let most = size.max(self.options.fill_size);
        let mut free = self.granules.free.lock()?;
        let memory = free.settled_for(most);
        let ample = memory.most_of(most);
        let found = if ample > size
            && let Some(block) = memory.take(ample, most, align)?
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
        // SAFETY: just taken out of the free memory.
        Ok(unsafe { self.granules.hand_to_buffer(block) }.into())
    }

    unsafe fn empty(&self, unused: Block) {
        // SAFETY: the caller returns the end of a fill.
        unsafe { self.put_end(unused) };
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
unsafe impl<A: Arena, F: FitMemory, L: LockKind> ManualPool for Variable<A, F, L> {
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

// SAFETY: memory from `alloc` is taken out of the free memory as fills are, and stays out until it is
// freed. `free` replaces the pointer by one that reaches the same address. The free memory is behind a
// lock, so any thread that may call the pool may free. Objects are resized as
// `ManualPool` promises, and with a pointer that reaches all of them.
unsafe impl<A: Arena, F: FitMemory, L: LockKind> Store for Variable<A, F, L> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = self.reserve_size(layout).ok_or(F::TOO_LARGE)?;
        let align = Align::of_layout(layout);
        let found = {
            let mut free = self.granules.free.lock()?;
            match free.take_binned(size, align) {
                None => Self::take(&mut free, size, size, align)?,
                object => object,
            }
        };
        let object = match found {
            Some(object) => object,
            None => self.take_growing(size, size, align)?,
        };
        // SAFETY: just taken out of the free memory, in whole granules.
        Ok(unsafe { self.granules.hand_out(object) })
    }

    /// Adds objects that lie together, as far as free blocks allow, under one lock.
    fn alloc_many(&self, layout: Layout, magazine: &mut Magazine) {
        let Some(size) = self.reserve_size(layout) else { return };
        let align = Align::of_layout(layout);
        let Ok(mut free) = self.granules.free.lock() else { return };
        while magazine.room() != 0 {
            let memory = free.memory();
            let run = if align.get() > GRANULE {
                memory.take(size, size, align)
            } else {
                memory.take_units(size, magazine.room())
            };
            let Ok(run) = run else { return };
            let Some(run) = run else {
                // After damage nothing is found, and nothing joins.
                if free.is_settled() || free.ensure_sound().is_err() {
                    return;
                }
                free.settled_for(piece_for(size, align));
                continue;
            };
            // SAFETY: just taken out of the free memory, in whole granules.
            divide(run, size, magazine, |object| unsafe { self.granules.hand_out(object) });
        }
    }

    unsafe fn free_many(&self, layout: Layout, magazine: &mut Magazine) {
        // SAFETY: the caller frees objects of this pool, which take the bytes that `reserve_size` says.
        let mut runs = unsafe { self.take_back_all(magazine, self.reserve_size(layout)) };
        if F::SORTS || runs.lie_together() {
            runs.sort();
        }
        // SAFETY: whole granules of the pool, which the caller gave up.
        unsafe { self.insert(runs) };
    }

    // Its caller mostly knows the layout, and so what size that takes.
    #[inline(always)]
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
        // SAFETY: an object of this pool, which takes the bytes that `reserve_size` says.
        unsafe { self.granules.resize_room(object, room) }
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Some(self.granules.header.arena())
    }
}

impl<A: Arena, F: FitMemory, L: LockKind> Check for Variable<A, F, L> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.granules.check(level)
    }
}

impl<A: Arena, F: FitMemory, L: LockKind> Describe for Variable<A, F, L> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.granules.header.describe(out, depth)?;
        let figures = {
            let Ok(mut free) = self.granules.free.lock() else { return Ok(()) };
            free.settled().figures()
        };
        match figures.blocks {
            Some(count) => {
                line(out, depth + 1, "free", format_args!("{} bytes in {count} blocks", figures.size))?;
            }
            None => line(out, depth + 1, "free", format_args!("{} bytes", figures.size))?,
        }
        line(out, depth + 1, "largest free", format_args!("{} bytes", figures.largest))?;
        if let Some((size, levels)) = figures.map {
            line(out, depth + 1, "map", format_args!("{size} bytes, {levels} levels of directories"))?;
        }
        line(out, depth + 1, "extend by", format_args!("{} bytes", self.options.extend_by))?;
        line(out, depth + 1, "fill size", format_args!("{} bytes", self.options.fill_size))
    }
}
