//! How pools of variable size fill the buffers of allocation points and take back what is in them
//! (design/pool-mvff.md `.mvff.waiting`, `.mvff.freed`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Align, Arena, Block, BufferClass, Busy, LockKind, PoolLock};

use crate::bins::Binned;
use crate::freed::{BATCH, FreedBlocks};
use crate::granules::{FreeMemory, Granules};
use crate::land::GRANULE;
use crate::link::Damaged;
use crate::poison::poison;

/// Blocks that are taken for one fill.
struct Blocks {
    taken: [Option<Block>; BATCH],
    count: usize,
}

impl Blocks {
    const fn none() -> Self {
        Self { taken: [None; BATCH], count: 0 }
    }

    const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes up to `wanted` units of `size` bytes. `take` is asked for the rest, and returns a block of as many or fewer, until it
    /// has none.
    fn take(&mut self, size: usize, wanted: usize, mut take: impl FnMut(usize) -> Option<Block>) {
        let mut left = wanted;
        while left != 0
            && let Some(place) = self.taken.get_mut(self.count)
            && let Some(block) = take(left)
        {
            *place = Some(block);
            self.count += 1;
            left = left.saturating_sub(block.size() / size);
        }
    }
}

impl<A: Arena, M: FreeMemory, L: LockKind> Granules<A, Binned<M>, L> {
    /// Takes several blocks of `size` bytes for a buffer, which is empty, under one lock, if there is no large one: the first
    /// is returned, and the others wait. `take_units` takes that many units that lie together. `None` if a fill of up to
    /// `fill_size` bytes is to be one block (design/pool-mvff.md `.mvff.waiting`).
    ///
    /// # Errors
    /// [`Error::Busy`](tripoint_core::Error::Busy)
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    /// - Objects of `size` bytes are whole granules, and so are the multiples of it that `take_units` takes.
    #[inline]
    pub(crate) unsafe fn fill_with_several(
        &self,
        buffer: &FreedBlocks,
        size: usize,
        align: Align,
        fill_size: usize,
        take_units: impl Fn(&mut M, usize) -> Option<Block>,
    ) -> Result<Option<Block>, Busy> {
        // SAFETY: the caller is the buffer's owner.
        let wanted = unsafe { buffer.next_wanted(size) };
        let least = size.saturating_mul(wanted);
        if wanted == 0 || least > fill_size || align.get() > GRANULE {
            return Ok(None);
        }
        let mut blocks = Blocks::none();
        {
            let mut free = self.free.lock()?;
            // A small fill is no better than several blocks of the size, and these need not join their neighbours.
            if free.memory().largest() < least {
                blocks.take(size, wanted, |_| free.take_waiting(size, align));
            }
            if blocks.is_empty() {
                let memory = free.settled_for(least);
                if memory.largest() < least {
                    blocks.take(size, wanted, |count| take_units(memory, count));
                }
            }
        }
        // SAFETY: just taken out of the free memory, in multiples of the size. The caller is the buffer's owner.
        Ok(unsafe { self.hand_all_to_buffer(&blocks, size, buffer) })
    }
}

impl<A: Arena, F: FreeMemory, L: LockKind> Granules<A, F, L> {
    /// Prepares blocks for a buffer: returns the first, and has the others wait there, as blocks of `size` bytes.
    ///
    /// # Safety
    /// - The blocks were just taken out of the free memory, and are multiples of `size`.
    /// - `buffer` is of this pool, and the caller is its owner.
    unsafe fn hand_all_to_buffer(&self, blocks: &Blocks, size: usize, buffer: &FreedBlocks) -> Option<Block> {
        // SAFETY: just taken out of the free memory.
        let mut handed = blocks.taken.iter().flatten().map(|&block| unsafe { self.hand_to_buffer(block) });
        let first = handed.next()?;
        // SAFETY: the caller is the owner; blocks just taken, multiples of the size.
        unsafe { buffer.keep(size, handed) };
        Some(first)
    }

    /// The next block that waits in a buffer, if it serves the layout.
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    #[inline(always)]
    pub(crate) unsafe fn next_run(&self, buffer: &FreedBlocks, layout: Layout) -> Option<Block> {
        // SAFETY: the caller is the buffer's owner.
        self.sound(unsafe { buffer.pop_waiting(layout.size(), Align::of_layout(layout)) })
    }

    /// Takes a block of `size` bytes that a buffer keeps: one that its owner freed, or else one that waits.
    ///
    /// # Safety
    /// - As [`Granules::next_run`].
    #[inline(always)]
    pub(crate) unsafe fn take_kept(&self, buffer: &FreedBlocks, size: usize, align: Align) -> Option<Block> {
        // SAFETY: the caller is the buffer's owner.
        let block = match unsafe { buffer.pop(size, align) } {
            // SAFETY: the caller is the buffer's owner.
            Ok(None) => unsafe { buffer.pop_waiting(size, align) },
            freed => freed,
        };
        self.sound(block)
    }

    /// Keeps a freed object in a buffer. Returns its block if there is no room.
    ///
    /// # Safety
    /// - As [`Granules::next_run`], and as [`Granules::take_back`] of the object.
    #[inline(always)]
    pub(crate) unsafe fn keep_freed(
        &self,
        buffer: &FreedBlocks,
        object: NonNull<u8>,
        size: Option<usize>,
    ) -> Option<Block> {
        // SAFETY: an object of this pool that takes `size` bytes, which the caller gives up.
        let object = unsafe { self.take_back(object, size) }?;
        // SAFETY: whole granules of the pool, which the caller gave up. It is the buffer's owner.
        unsafe { buffer.push(object) }
    }

    /// Takes back what a buffer's owner freed, by `put`.
    ///
    /// # Safety
    /// - As [`Granules::next_run`].
    #[inline]
    pub(crate) unsafe fn flush_buffer(&self, buffer: &FreedBlocks, put: impl FnMut(Block)) {
        if buffer.is_empty() {
            return;
        }
        // SAFETY: the caller is the buffer's owner.
        if unsafe { buffer.take_all(put) }.is_err() {
            self.note_damage();
        }
    }

    /// What was taken or returned; damage is noted, and none.
    #[inline(always)]
    fn sound(&self, block: Result<Option<Block>, Damaged>) -> Option<Block> {
        block.unwrap_or_else(|Damaged| {
            self.note_damage();
            None
        })
    }

    /// Takes back what waits in a buffer, by `put`, and then the end of its last block, by `empty`. If one of them unwinds, as
    /// an event hook may when memory returns to the arena, the others join the free memory, and none of them is returned.
    ///
    /// # Safety
    /// - `buffer` is of this pool, the caller is its owner, and `unused` is the end of the block that it had last.
    #[inline]
    pub(crate) unsafe fn empty_buffer(
        &self,
        buffer: &FreedBlocks,
        unused: Block,
        mut put: impl FnMut(Block),
        empty: impl FnOnce(Block),
    ) {
        if buffer.waiting() == 0 {
            return empty(unused);
        }
        // SAFETY: the caller is the owner, and the iterator does not outlive this call.
        let waiting = unsafe { buffer.take_waiting() };
        let waiting = waiting.flat_map(|block| block.inspect_err(|_| self.note_damage()));
        // SAFETY: a block that waited, whole granules, which the buffer gives up.
        let waiting = waiting.inspect(|&block| unsafe { self.take_from_buffer(block) });
        let mut left = Left { granules: self, waiting, unused: Some(unused) };
        for block in left.waiting.by_ref() {
            put(block);
        }
        if let Some(unused) = left.unused.take() {
            empty(unused);
        }
    }

    /// Takes back what a buffer's owner freed, and returns nothing to the arena.
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    pub(crate) unsafe fn finish_buffer(&self, buffer: &FreedBlocks) {
        // SAFETY: the caller is the owner. What it freed is whole granules of the pool, which nothing uses.
        unsafe { self.flush_buffer(buffer, |block| self.join(block)) };
    }

    /// Adds a block to the free memory, and returns nothing to the arena.
    ///
    /// # Safety
    /// - `block` is whole granules of the pool, which nothing uses any more.
    unsafe fn join(&self, block: Block) {
        if let Ok(mut free) = self.free.lock() {
            // SAFETY: whole granules of the pool, which the caller gives up.
            unsafe { free.insert(block) };
        }
    }
}

/// What a buffer had. If this is dropped before that went back, it joins the free memory then.
struct Left<'p, A: Arena, F: FreeMemory, L: LockKind, I: Iterator<Item = Block>> {
    granules: &'p Granules<A, F, L>,
    waiting: I,
    unused: Option<Block>,
}

impl<A: Arena, F: FreeMemory, L: LockKind, I: Iterator<Item = Block>> Drop for Left<'_, A, F, L, I> {
    fn drop(&mut self) {
        let unused = self.unused.take().filter(|unused| unused.size() != 0);
        if let Some(unused) = unused {
            // SAFETY: the end of a fill, which the owner gave up.
            unsafe { poison(unused) };
            // SAFETY: whole granules of that fill.
            unsafe { self.granules.take_from_buffer(unused) };
        }
        for block in self.waiting.by_ref().chain(unused) {
            // SAFETY: whole granules of the pool, which the owner of the buffer gave up.
            unsafe { self.granules.join(block) };
        }
    }
}
