//! The heap as the free memory of a pool of granules.

use tripoint_core::{Addr, Block, CheckError};

use super::check::check_heap;
use super::heap::Heap;
use crate::granules::FreeMemory;
use crate::link::Damaged;

impl FreeMemory for Heap {
    fn size(&self) -> usize {
        Self::size(self)
    }

    fn largest(&mut self) -> usize {
        Self::largest(self)
    }

    /// Shows free blocks as far as they are sound.
    fn walk(&mut self, visit: &mut dyn FnMut(Block)) {
        let mut limit = Addr::ZERO;
        self.walk_edges(&mut |node| {
            if node.addr() >= limit
                && let Ok(block) = node.block(self.lists.key())
            {
                limit = block.range().limit();
                visit(block);
            }
        });
    }

    #[inline]
    unsafe fn insert(&mut self, block: Block) {
        // SAFETY: the caller's promise; all memory of the pool is covered. After damage the block is lost.
        let _ = unsafe { Self::insert(self, block) };
    }

    fn overlaps(&mut self, block: Block) -> bool {
        self.has_edge(block)
    }

    fn ensure_sound(&self) -> Result<(), Damaged> {
        self.health.ensure()
    }

    fn note_damage(&self) {
        let _ = self.health.note::<()>(Err(Damaged));
    }

    fn check(&mut self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        check_heap(self, owns)
    }
}
