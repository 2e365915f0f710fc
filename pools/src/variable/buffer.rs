//! How pools of variable size fill the buffers of allocation points and take back what is in them
//! (design/pool-mvff.md `.mvff.waiting`, `.mvff.freed`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Align, Arena, Block, Busy, LockKind, Magazine, OwnBuffer, PoolLock};

use super::Variable;
use super::fit::FitMemory;
use super::freed::{BATCH, FreedBlocks};
use super::runs::Runs;
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
            left = left.saturating_sub(block.size().checked_div(size).unwrap_or(left));
        }
    }
}

#[allow(private_bounds, reason = "no other memory than that of these classes")]
impl<A: Arena, F: FitMemory, L: LockKind> Variable<A, F, L> {
    /// Takes several blocks of `size` bytes for a buffer, which is empty, under one lock, if there is no large one: the first
    /// is returned, and the others wait. `None` if the fill is to be one block (design/pool-mvff.md `.mvff.waiting`).
    ///
    /// # Errors
    /// [`Error::Busy`](tripoint_core::Error::Busy)
    ///
    /// # Safety
    /// - Objects of `size` bytes are whole granules.
    #[inline]
    pub(super) unsafe fn fill_with_several(
        own: OwnBuffer<'_, Self, FreedBlocks>,
        size: usize,
        align: Align,
    ) -> Result<Option<Block>, Busy> {
        let (this, wanted) = (own.pool(), FreedBlocks::next_wanted(own, size));
        let least = size.saturating_mul(wanted);
        if wanted == 0 || least > this.options.fill_size || align.get() > GRANULE {
            return Ok(None);
        }
        let mut blocks = Blocks::none();
        {
            let mut free = this.granules.free.lock()?;
            // A small fill is no better than several blocks of the size, and these need not join their neighbours.
            if free.memory().largest() < least {
                blocks.take(size, wanted, |_| free.take_binned(size, align));
            }
            if blocks.is_empty() {
                let memory = free.settled_for(least);
                if memory.largest() < least {
                    blocks.take(size, wanted, |count| memory.take_units_together(size, count));
                }
            }
        }
        // SAFETY: just taken out of the free memory, in multiples of the size.
        Ok(unsafe { Self::hand_all_to_buffer(own, &blocks, size) })
    }

    /// Prepares blocks for a buffer: returns the first, and has the others wait there, as blocks of `size` bytes.
    ///
    /// # Safety
    /// - The blocks were just taken out of the free memory, and are multiples of `size`.
    unsafe fn hand_all_to_buffer(
        own: OwnBuffer<'_, Self, FreedBlocks>,
        blocks: &Blocks,
        size: usize,
    ) -> Option<Block> {
        let taken = blocks.taken.iter().flatten();
        // SAFETY: just taken out of the free memory.
        let mut handed = taken.map(|&block| unsafe { own.pool().granules.hand_to_buffer(block) });
        let first = handed.next()?;
        // SAFETY: whole granules, just taken, multiples of the size.
        unsafe { FreedBlocks::keep(own, size, handed) };
        Some(first)
    }

    /// Takes the next block that waits in a buffer, if it serves the layout.
    #[inline(always)]
    pub(super) fn take_waiting(own: OwnBuffer<'_, Self, FreedBlocks>, layout: Layout) -> Option<Block> {
        own.pool().sound(FreedBlocks::pop_waiting(own, layout.size(), Align::of_layout(layout)))
    }

    /// Takes a block of `size` bytes that a buffer keeps: one that its owner freed, or else one that waits.
    #[inline(always)]
    pub(super) fn take_kept(
        own: OwnBuffer<'_, Self, FreedBlocks>,
        size: usize,
        align: Align,
    ) -> Option<Block> {
        let block = match FreedBlocks::pop(own, size, align) {
            Ok(None) => FreedBlocks::pop_waiting(own, size, align),
            freed => freed,
        };
        own.pool().sound(block)
    }

    /// Keeps a freed object in a buffer. Returns its block if there is no room.
    ///
    /// # Safety
    /// - As `Granules::take_back` of the object.
    #[inline(always)]
    pub(super) unsafe fn keep_freed(
        own: OwnBuffer<'_, Self, FreedBlocks>,
        object: NonNull<u8>,
        size: Option<usize>,
    ) -> Option<Block> {
        // SAFETY: the caller frees an object of this pool that takes `size` bytes.
        let object = unsafe { own.pool().granules.take_back(object, size) }?;
        // SAFETY: whole granules of the pool, which the caller gave up.
        unsafe { FreedBlocks::push(own, object) }
    }

    /// Takes back what a buffer's owner freed. What is surplus returns to the arena.
    #[inline]
    pub(super) fn put_freed(own: OwnBuffer<'_, Self, FreedBlocks>) {
        // SAFETY: what was freed is whole granules of the pool, which nothing uses.
        Self::take_freed(own, |block| unsafe { own.pool().put_apart(block) });
    }

    /// Takes back what a buffer's owner freed, and returns nothing to the arena.
    pub(super) fn join_freed(own: OwnBuffer<'_, Self, FreedBlocks>) {
        // SAFETY: what was freed is whole granules of the pool, which nothing uses.
        Self::take_freed(own, |block| unsafe { own.pool().granules.join(block) });
    }

    #[inline]
    fn take_freed(own: OwnBuffer<'_, Self, FreedBlocks>, take: impl FnMut(Block)) {
        if own.kept().is_empty() {
            return;
        }
        if FreedBlocks::take_all(own, take).is_err() {
            own.pool().granules.note_damage();
        }
    }

    /// What was taken or returned; damage is noted, and none.
    #[inline(always)]
    fn sound(&self, block: Result<Option<Block>, Damaged>) -> Option<Block> {
        block.unwrap_or_else(|Damaged| {
            self.granules.note_damage();
            None
        })
    }

    /// Takes back what waits in a buffer, and then the end of its last block. If that unwinds, as an event hook may when memory
    /// returns to the arena, the others join the free memory, and none of them is returned.
    ///
    /// # Safety
    /// - `unused` is the end of the block that the buffer had last, and nothing uses it any more.
    pub(super) unsafe fn put_waiting(own: OwnBuffer<'_, Self, FreedBlocks>, unused: Block) {
        let (this, waiting) = (own.pool(), FreedBlocks::take_waiting(own));
        let waiting = waiting.flat_map(|block| block.inspect_err(|_| this.granules.note_damage()));
        // SAFETY: a block that waited, whole granules, which the buffer gives up.
        let waiting = waiting.inspect(|&block| unsafe { this.granules.take_from_buffer(block) });
        let mut left = Left { pool: this, waiting, unused: Some(unused) };
        for block in left.waiting.by_ref() {
            // SAFETY: a block that waited, whole granules of the pool, which nothing uses.
            unsafe { this.put(block) };
        }
        if let Some(unused) = left.unused.take() {
            // SAFETY: the end of a fill or of a run, which the caller returns.
            unsafe { this.put_end(unused) };
        }
    }

    /// Takes back all objects of a magazine, which take `size` bytes each, as `Granules::take_back` does. What is no object is left
    /// out.
    ///
    /// # Safety
    /// - The objects are those of this pool that take `size` bytes. None is in the magazine twice, and nothing uses them
    ///   any more.
    pub(super) unsafe fn take_back_all(&self, magazine: &mut Magazine, size: Option<usize>) -> Runs {
        // SAFETY: the caller frees an object of that size, which the magazine has once.
        magazine.replace_each(|object| unsafe { self.granules.take_back(object, size) }.map(Block::base));
        // SAFETY: `take_back` reaches each object by the arena's pointer. They are as large as said, and a size of `None`
        // has no object.
        let runs = unsafe { Runs::new(magazine, size.unwrap_or(GRANULE)) };
        magazine.clear();
        runs
    }
}

/// What a buffer had. If this is dropped before that went back, it joins the free memory then.
struct Left<'p, A: Arena, F: FitMemory, L: LockKind, I: Iterator<Item = Block>> {
    pool: &'p Variable<A, F, L>,
    waiting: I,
    unused: Option<Block>,
}

impl<A: Arena, F: FitMemory, L: LockKind, I: Iterator<Item = Block>> Drop for Left<'_, A, F, L, I> {
    fn drop(&mut self) {
        let granules = &self.pool.granules;
        let unused = self.unused.take().filter(|unused| unused.size() != 0);
        if let Some(unused) = unused {
            // SAFETY: the end of a fill, which the owner gave up.
            unsafe { poison(unused) };
            // SAFETY: whole granules of that fill.
            unsafe { granules.take_from_buffer(unused) };
        }
        for block in self.waiting.by_ref().chain(unused) {
            // SAFETY: whole granules of the pool, which the owner of the buffer gave up.
            unsafe { granules.join(block) };
        }
    }
}
