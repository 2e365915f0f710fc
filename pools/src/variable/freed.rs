//! What a buffer of a variable pool keeps: blocks of its fill that do not touch, and that wait until it comes to them, and
//! blocks that its owner freed, for objects of their size (design/pool-mvff.md `.mvff.waiting`, `.mvff.freed`).

use core::array;
use core::iter;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Align, Block, BufferClass, OwnBuffer};

use crate::blocks::{FreeBlock, OwnList};
use crate::land::GRANULE;
use crate::link::{Damaged, LinkKey};

/// The bins, and so the granules of the largest blocks that are kept.
const BINS: usize = 16;
/// The most freed blocks that are kept.
const BLOCKS_MAX: usize = 256;
/// The most blocks of one fill. The first takes two, and each twice as many as the one before, as long as all are used.
pub(crate) const BATCH: usize = 64;
const WANTED_MIN: usize = 2;
/// How many of the next fills are large ones once objects differ in size.
const LARGE: usize = 8;

/// The class of buffers of [`Mvff`](crate::Mvff) and [`Tlsf`](crate::Tlsf): the blocks of the last fill that wait for the
/// buffer, all of one size, and small blocks that the owner freed since.
///
/// Only the owner changes it, so it is read and written without read-modify-writes.
#[derive(Debug)]
pub struct FreedBlocks {
    /// The first block that waits. Each begins with the link to the next, as far as `waiting` goes.
    first: OwnList,
    /// The bytes of all blocks that wait.
    waiting: AtomicUsize,
    /// The size of each, and of those of the last fill if it took several.
    size: AtomicUsize,
    /// How many blocks the next fill takes if it finds no large one.
    wanted: AtomicUsize,
    /// How many of the next fills take no such blocks.
    large: AtomicUsize,
    /// The first block of each bin. Each begins with the link to the next.
    bins: [OwnList; BINS],
    count: AtomicUsize,
    key: LinkKey,
}

impl FreedBlocks {
    /// No blocks yet, for those of the pool with this key.
    pub(crate) fn none(key: LinkKey) -> Self {
        let bins = array::from_fn(|_| OwnList::none());
        let [waiting, size, wanted, large, count] = [0, 0, WANTED_MIN, 0, 0].map(AtomicUsize::new);
        Self { first: OwnList::none(), waiting, size, wanted, large, bins, count, key }
    }

    /// How many blocks of this size a fill takes if it finds no large one; the next takes twice as many. None for a while if a
    /// fill took several of another size: objects differ then, and only a large block serves many of them. The
    /// caller has taken all that waited.
    pub(crate) fn next_wanted<P>(own: OwnBuffer<'_, P, Self>, size: usize) -> usize {
        let this = own.kept();
        let (mut wanted, last) = (this.wanted.load(Ordering::Relaxed), this.size.load(Ordering::Relaxed));
        let mut large = this.large.load(Ordering::Relaxed);
        if last != 0 && last != size {
            (large, wanted) = (LARGE, WANTED_MIN);
        }
        this.size.store(0, Ordering::Relaxed);
        this.large.store(large.saturating_sub(1), Ordering::Relaxed);
        let next = if large == 0 { BATCH.min(2 * wanted) } else { wanted };
        this.wanted.store(next, Ordering::Relaxed);
        if large == 0 { wanted } else { 0 }
    }

    /// Keeps what was taken for a fill beside its first block: blocks of `size` bytes, which wait. The caller
    /// has taken all that waited before.
    ///
    /// # Safety
    /// - `blocks` are whole granules of the pool and multiples of `size`, and nothing uses them.
    pub(crate) unsafe fn keep<P>(
        own: OwnBuffer<'_, P, Self>,
        size: usize,
        blocks: impl Iterator<Item = Block>,
    ) {
        let (this, mut first, mut waiting) = (own.kept(), None, 0);
        for block in blocks {
            let mut rest = block;
            while let Some((unit, after)) = rest.split_at(size).filter(|_| rest.size() != 0) {
                // SAFETY: whole granules that nothing uses.
                first = Some(unsafe { FreeBlock::link(unit.base(), first, this.key) });
                (waiting, rest) = (waiting + size, after);
            }
        }
        this.first.set(first);
        this.size.store(size, Ordering::Relaxed);
        this.waiting.store(waiting, Ordering::Relaxed);
    }

    /// Takes the next block that waits, if they are of this size.
    ///
    /// # Errors
    /// [`Damaged`] if its link was written over. All blocks are lost then.
    #[inline(always)]
    pub(crate) fn pop_waiting<P>(
        own: OwnBuffer<'_, P, Self>,
        size: usize,
        align: Align,
    ) -> Result<Option<Block>, Damaged> {
        let this = own.kept();
        let waiting = this.waiting.load(Ordering::Relaxed);
        let serves = waiting != 0 && size == this.size.load(Ordering::Relaxed) && align.get() <= GRANULE;
        if !serves {
            return Ok(None);
        }
        // SAFETY: the first block waits, so it begins with its link. `own` is the owner's.
        let Some(base) = this.sound(unsafe { this.first.pop(GRANULE, this.key) })? else { return Ok(None) };
        this.waiting.store(waiting - size, Ordering::Relaxed);
        // SAFETY: the block waited, and is in no list any more.
        Ok(Some(unsafe { Block::new(base, size) }))
    }

    /// Takes all blocks that wait, one by one. The next fill takes few of them. After damage the others
    /// are lost.
    pub(crate) fn take_waiting<P>(
        own: OwnBuffer<'_, P, Self>,
    ) -> impl Iterator<Item = Result<Block, Damaged>> {
        own.kept().wanted.store(WANTED_MIN, Ordering::Relaxed);
        let size = own.kept().size.load(Ordering::Relaxed);
        iter::from_fn(move || Self::pop_waiting(own, size, Align::WORD).transpose())
    }

    /// What was taken; after damage all blocks are lost.
    #[inline(always)]
    fn sound<T>(&self, taken: Result<T, Damaged>) -> Result<T, Damaged> {
        taken.inspect_err(|_| self.lose())
    }

    /// The bin of blocks of `size` bytes, if there is one.
    #[inline(always)]
    fn bin(&self, size: usize) -> Option<&OwnList> {
        self.bins.get((size / GRANULE).wrapping_sub(1))
    }

    /// Whether there is no block.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Keeps a block. Returns it if it is too large, or if the buffer keeps as many as it may.
    ///
    /// # Safety
    /// - The caller gives up the block, which is whole granules of the pool.
    #[inline(always)]
    pub(crate) unsafe fn push<P>(own: OwnBuffer<'_, P, Self>, block: Block) -> Option<Block> {
        let this = own.kept();
        let count = this.count.load(Ordering::Relaxed);
        let Some(bin) = this.bin(block.size()).filter(|_| count < BLOCKS_MAX) else { return Some(block) };
        // SAFETY: whole granules, which the caller gives up. `own` is the owner's.
        unsafe { bin.push(block.base(), this.key) };
        this.count.store(count + 1, Ordering::Relaxed);
        None
    }

    /// Takes the block of `size` bytes that was kept last. Blocks are aligned to a granule, and serve no other alignment.
    ///
    /// # Errors
    /// [`Damaged`] if its link was written over, or leads in a ring. All blocks are lost then.
    #[inline(always)]
    pub(crate) fn pop<P>(
        own: OwnBuffer<'_, P, Self>,
        size: usize,
        align: Align,
    ) -> Result<Option<Block>, Damaged> {
        let this = own.kept();
        let Some(bin) = this.bin(size).filter(|_| align.get() <= GRANULE) else { return Ok(None) };
        if LinkKey::CHECKS && this.is_empty() && bin.first().is_some() {
            return this.sound(Err(Damaged));
        }
        // SAFETY: the first block is kept, so it begins with its link. `own` is the owner's.
        let Some(base) = this.sound(unsafe { bin.pop(GRANULE, this.key) })? else { return Ok(None) };
        this.count.store(this.count.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
        // SAFETY: the block was put into the bin of its size, and is in no bin any more.
        Ok(Some(unsafe { Block::new(base, size) }))
    }

    /// Takes all blocks, one by one.
    ///
    /// # Errors
    /// As [`FreedBlocks::pop`].
    pub(crate) fn take_all<P>(
        own: OwnBuffer<'_, P, Self>,
        mut take: impl FnMut(Block),
    ) -> Result<(), Damaged> {
        for size in (1..=BINS).map(|granules| granules * GRANULE) {
            while let Some(block) = Self::pop(own, size, Align::WORD)? {
                take(block);
            }
        }
        Ok(())
    }

    /// Forgets all blocks, after damage.
    #[cold]
    fn lose(&self) {
        self.bins.iter().for_each(|bin| bin.set(None));
        self.count.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
    }
}

impl BufferClass for FreedBlocks {
    /// All buffers of a pool have one key, and a buffer without an owner keeps no blocks.
    unsafe fn renew(&self, _fresh: Self) {
        self.wanted.store(WANTED_MIN, Ordering::Relaxed);
        self.size.store(0, Ordering::Relaxed);
        self.large.store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}
