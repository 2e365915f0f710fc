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
    pub(crate) unsafe fn new(mut objects: Magazine, size: usize) -> Self {
        let mut runs = Self { blocks: [None; Magazine::MAX], count: 0, next: 0, objects: objects.len() };
        // SAFETY: the objects are as `join_next` requires, which the caller promised.
        while let Some(block) = unsafe { join_next(&mut objects, size) }
            && let Some(place) = runs.blocks.get_mut(runs.count)
        {
            *place = Some(block);
            runs.count += 1;
        }
        runs
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

/// Takes the last objects out of a magazine, for as long as each touches the ones before it.
///
/// # Safety
/// - As [`Runs::new`].
#[inline]
unsafe fn join_next(objects: &mut Magazine, size: usize) -> Option<Block> {
    let mut base = objects.pop()?;
    let mut joined = size;
    while let Some(next) = objects.next_out() {
        if next.addr().get() + size == base.addr().get() {
            base = next;
        } else if base.addr().get() + joined != next.addr().get() {
            break;
        }
        objects.pop();
        joined += size;
    }
    // SAFETY: objects that nothing uses and that touch; the first one's pointer reaches them all.
    Some(unsafe { Block::new(base, joined) })
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
    while let Some((object, rest)) = run.split_at(size) {
        let full = magazine.push(hand_out(object)).is_err();
        aver!(!full, "a run of more objects than the magazine has room for");
        run = rest;
    }
}
