//! Objects of one size as blocks: objects of a magazine that follow one another and touch are one block, and the
//! objects of one block fill a magazine.

use core::ptr::NonNull;

use tripoint_core::{Block, Magazine, aver};

/// What the objects of a magazine lie in. Those that follow one another in the magazine and touch are one block; if the
/// blocks are [sorted](Runs::sort), all that touch.
pub(crate) struct Runs {
    blocks: [Option<Block>; Magazine::MAX],
    count: usize,
    next: usize,
    objects: usize,
}

impl Runs {
    /// # Safety
    /// - The objects are blocks of `size` bytes, more than zero, which nothing uses. None is in the magazine twice, and
    ///   each pointer reaches the neighbours as well.
    pub(crate) unsafe fn new(magazine: &Magazine, size: usize) -> Self {
        let mut runs = Self { blocks: [None; Magazine::MAX], count: 0, next: 0, objects: magazine.len() };
        let mut objects = magazine.as_slice().iter().rev().copied();
        let Some(mut base) = objects.next() else { return runs };
        let mut joined = size;
        for object in objects {
            if object.addr().get() + size == base.addr().get() {
                base = object;
            } else if base.addr().get() + joined != object.addr().get() {
                // SAFETY: objects that nothing uses and that touch; the first one's pointer reaches them all.
                runs.push(unsafe { Block::new(base, joined) });
                (base, joined) = (object, 0);
            }
            joined += size;
        }
        // SAFETY: objects that nothing uses and that touch; the first one's pointer reaches them all.
        runs.push(unsafe { Block::new(base, joined) });
        runs
    }

    fn push(&mut self, block: Block) {
        // There are no more blocks than a magazine has objects.
        if let Some(place) = self.blocks.get_mut(self.count) {
            *place = Some(block);
            self.count += 1;
        }
    }

    /// Whether the objects of a magazine lie together, two and more: where a structure was, and not here and there.
    pub(crate) const fn lie_together(&self) -> bool {
        self.count * 2 <= self.objects
    }

    /// Puts the blocks in the order of their addresses.
    pub(crate) fn sort(&mut self) {
        if let Some(blocks) = self.blocks.get_mut(..self.count) {
            blocks.sort_unstable_by_key(|block| block.map(Block::base));
        }
    }

    /// The block that comes next, and is not taken yet.
    fn peek(&self) -> Option<Block> {
        self.blocks.get(..self.count)?.get(self.next).copied().flatten()
    }
}

impl Iterator for Runs {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let first = self.peek()?;
        self.next += 1;
        let mut size = first.size();
        while let Some(touching) =
            self.peek().filter(|next| first.base().addr().get() + size == next.base().addr().get())
        {
            size += touching.size();
            self.next += 1;
        }
        // SAFETY: blocks that nothing uses and that touch; the first one's pointer reaches them all (`Runs::new`).
        Some(unsafe { Block::new(first.base(), size) })
    }
}

/// Divides a run into objects of `size` bytes, and adds them to a magazine, which has room for them. `hand_out`
/// prepares each of them for the client.
pub(crate) fn divide(
    mut run: Block,
    size: usize,
    magazine: &mut Magazine,
    hand_out: impl Fn(Block) -> NonNull<u8>,
) {
    aver!(run.size() / size <= magazine.room(), "a run of more objects than the magazine has room for");
    magazine.extend(core::iter::from_fn(|| {
        let (object, rest) = run.split_at(size)?;
        run = rest;
        Some(hand_out(object))
    }));
}
