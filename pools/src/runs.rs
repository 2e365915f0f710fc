//! Objects of one size as blocks: objects of a magazine that follow one another and touch are one block, and the
//! objects of one block fill a magazine.

use core::ptr::NonNull;

use tripoint_core::{Block, Magazine, aver};

/// What the objects of a magazine lie in, from the last one on. Those that follow one another in the magazine and
/// touch are one block: if it is sorted, all that touch.
pub(crate) struct Runs {
    objects: Magazine,
    size: usize,
}

impl Runs {
    /// # Safety
    /// - The objects are blocks of `size` bytes, more than zero, which nothing uses. None is in the magazine twice, and
    ///   each pointer reaches the neighbours as well.
    pub(crate) const unsafe fn new(objects: Magazine, size: usize) -> Self {
        Self { objects, size }
    }

    /// Puts the objects in the order of their addresses.
    pub(crate) fn sort_by_address(&mut self) {
        self.objects.sort_by_address();
    }
}

impl Iterator for Runs {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let mut base = self.objects.pop()?;
        let mut size = self.size;
        while let Some(next) = self.objects.next_out() {
            if next.addr().get() + self.size == base.addr().get() {
                base = next;
            } else if base.addr().get() + size != next.addr().get() {
                break;
            }
            self.objects.pop();
            size += self.size;
        }
        // SAFETY: objects that nothing uses and that touch; the first one's pointer reaches them all (`Runs::new`).
        Some(unsafe { Block::new(base, size) })
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
