//! The free memory of a pool: blocks by size, and their edges by address
//! (design/pool-tlsf.md `.tlsf.edges`).

use core::num::NonZeroUsize;
use core::ptr::NonNull;

use tripoint_core::{AddrRange, Align, Arena, Block, PoolHeader, aver};

use super::class::{class_of, least_size, round_up};
use super::lists::Lists;
use super::node::{Link, Node};
use crate::land::GRANULE;
use crate::link::{Damaged, Health, LinkKey};
use crate::placement::{LOOKS, offset_of};
use crate::sparse_bits::{Bit, SparseBits};

/// The free memory of a [`Tlsf`](crate::Tlsf), which makes it. Every operation takes constant time.
///
/// ```text
/// size == the sum of all blocks in lists
/// edges == the first and the last granule of every block in lists, and no other granule
/// between two blocks lies memory in use: free neighbours are one block
/// ```
#[derive(Debug)]
pub struct SegregatedFit {
    pub(super) lists: Lists,
    pub(super) edges: SparseBits<GRANULE>,
    pub(super) health: Health,
    size: usize,
}

impl SegregatedFit {
    /// No free memory.
    pub(super) fn new<A: Arena>(header: &PoolHeader<A>) -> Self {
        Self {
            lists: Lists::new(LinkKey::of(header)),
            edges: SparseBits::new(header.arena().range()),
            health: Health::new(),
            size: 0,
        }
    }

    /// Adds a block, coalescing it with the free blocks that touch it. Returns the free block that it is part of now.
    ///
    /// # Errors
    /// [`Damaged`] if a free block that it touches is; the block is lost.
    ///
    /// # Safety
    /// - `block` is granules of the pool's memory, at least one, covered by the
    ///   edges, and overlaps no free block.
    /// - From now on, until it is taken again, nothing else touches it and it stays
    ///   valid for reads and writes.
    /// - Its pointer may be used for every free block that touches it: it has the
    ///   provenance of the arena's range.
    #[inline(always)]
    pub(super) unsafe fn insert(&mut self, block: Block) -> Result<Block, Damaged> {
        self.health.ensure()?;
        if LinkKey::CHECKS && self.has_edge(block) {
            return self.health.note(Err(Damaged));
        }
        self.size += block.size();
        // SAFETY: `block` is free memory of the pool, covered, and reached with the arena's provenance.
        let outcome = unsafe { self.coalesce(block) };
        self.health.note(outcome)
    }

    /// Whether the first or last granule of the block is the edge of a free block.
    pub(super) fn has_edge(&self, block: Block) -> bool {
        let ends = [addr_of(block.base()), addr_of(block.limit()) - GRANULE];
        ends.into_iter().any(|addr| self.edges.find_shared(addr).is_none_or(Bit::is_set))
    }

    /// # Safety
    /// - As [`SegregatedFit::insert`].
    #[inline(always)]
    unsafe fn coalesce(&mut self, block: Block) -> Result<Block, Damaged> {
        let (mut base, mut size) = (block.base(), block.size());
        let left = self.edges.find(addr_of(base).wrapping_sub(GRANULE));
        if let Some(edge) = left.filter(|edge| edge.is_set()) {
            // SAFETY: the granule before the block is the edge of a free block, and
            // its last one, since the next one was in use.
            let left = unsafe { Node::ending_at(base, self.lists.key()) }?;
            let left = self.lists.remove(left)?;
            if left.size() > GRANULE {
                edge.clear();
            }
            (base, size) = (left.base(), left.size() + size);
        } else {
            self.edges.insert(addr_of(base));
        }
        let right = self.edges.find(addr_of(block.limit()));
        if let Some(edge) = right.filter(|edge| edge.is_set()) {
            // SAFETY: the granule behind the block is the edge of a free block, and
            // its first one, since the one before was in use.
            let right = unsafe { Node::starting_at(block.limit()) };
            let right = self.lists.remove(right)?;
            if right.size() > GRANULE {
                edge.clear();
            }
            size += right.size();
        } else {
            self.edges.insert(addr_of(block.limit()) - GRANULE);
        }
        // SAFETY: free blocks that touch, all reached with one provenance.
        let block = unsafe { Block::new(base, size) };
        // SAFETY: free memory of the pool.
        unsafe { self.lists.insert(block) }?;
        Ok(block)
    }

    /// Takes a block off the list that it was found in, where all have `least` bytes or more.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline(always)]
    fn remove(&mut self, node: Node, least: usize) -> Result<Block, Damaged> {
        let block = self.lists.remove(node)?;
        if LinkKey::CHECKS && block.size() < least { Err(Damaged) } else { Ok(block) }
    }

    /// Takes at least `min` bytes, which is the least size of a class, and at most
    /// `max`, a multiple of a granule; none if no free block serves.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline(always)]
    pub(super) fn take(&mut self, min: usize, max: usize, align: Align) -> Result<Option<Block>, Damaged> {
        self.health.ensure()?;
        let outcome = self.take_sound(min, max, align);
        self.health.note(outcome)
    }

    #[inline(always)]
    fn take_sound(&mut self, min: usize, max: usize, align: Align) -> Result<Option<Block>, Damaged> {
        if align.get() > GRANULE {
            return self.take_aligned(min, max, align);
        }
        let Some(node) = self.lists.first_from(class_of(min)) else { return Ok(None) };
        let block = self.remove(node, min)?;
        let size = block.size().min(max);
        self.cut(block, 0, size).map(Some)
    }

    /// Takes as many units of `unit` bytes, which is the least size of a class, as lie together in the block
    /// that [`SegregatedFit::take`] would take one from, but at most `count`.
    ///
    /// # Errors
    /// [`Damaged`]
    pub(super) fn take_units(&mut self, unit: usize, count: usize) -> Result<Option<Block>, Damaged> {
        self.health.ensure()?;
        let outcome = self.take_units_sound(unit, unit, count);
        self.health.note(outcome)
    }

    /// As [`SegregatedFit::take_units`], from a block of a class whose every block holds all units that are asked for, or otherwise from one of
    /// the largest class: few blocks then make many units.
    ///
    /// # Errors
    /// [`Damaged`]
    pub(super) fn take_units_together(
        &mut self,
        unit: usize,
        count: usize,
    ) -> Result<Option<Block>, Damaged> {
        self.health.ensure()?;
        // Rounded up to a class, because a block of the class of the sum itself may be smaller than the sum.
        let all = round_up(unit.saturating_mul(count)).unwrap_or(usize::MAX);
        let least = self.largest().min(all).max(unit);
        let outcome = self.take_units_sound(least, unit, count);
        self.health.note(outcome)
    }

    /// Takes units from a block that has at least `least` bytes.
    fn take_units_sound(
        &mut self,
        least: usize,
        unit: usize,
        count: usize,
    ) -> Result<Option<Block>, Damaged> {
        let Some(node) = self.lists.first_from(class_of(least)) else { return Ok(None) };
        let block = self.remove(node, least)?;
        let size = (block.size() / unit).min(count.max(1)) * unit;
        self.cut(block, 0, size).map(Some)
    }

    /// Takes the first `size` bytes, whole granules, of the free block that begins at `base`, if there is one and it has
    /// that many.
    ///
    /// # Errors
    /// [`Damaged`]
    ///
    /// # Safety
    /// - The granule before `base` is in use, so that no free block goes on at `base`.
    /// - `base` may be used for the block: it has the provenance of the arena's range.
    pub(super) unsafe fn take_at(
        &mut self,
        base: NonNull<u8>,
        size: usize,
    ) -> Result<Option<Block>, Damaged> {
        self.health.ensure()?;
        // SAFETY: the granule before `base` is in use, and `base` has the provenance of the arena's range.
        let outcome = unsafe { self.take_at_sound(base, size) };
        self.health.note(outcome)
    }

    /// # Safety
    /// - As [`SegregatedFit::take_at`].
    unsafe fn take_at_sound(&mut self, base: NonNull<u8>, size: usize) -> Result<Option<Block>, Damaged> {
        if self.edges.find(addr_of(base)).is_none_or(|edge| !edge.is_set()) {
            return Ok(None);
        }
        // SAFETY: the granule is the edge of a free block, and its first one, since the one before is in use.
        let node = unsafe { Node::starting_at(base) };
        if node.size(self.lists.key())? < size {
            return Ok(None);
        }
        let block = self.lists.remove(node)?;
        self.cut(block, 0, size).map(Some)
    }

    /// Takes `range`, whole granules, out of `block`.
    ///
    /// # Errors
    /// [`Damaged`]
    ///
    /// # Safety
    /// - `block` is a free block of the heap, all of it, and covers the range.
    pub(super) unsafe fn take_range(&mut self, block: Block, range: AddrRange) -> Result<Block, Damaged> {
        self.health.ensure()?;
        // SAFETY: a free block of the heap begins there, by a pointer of the heap's.
        let node = unsafe { Node::starting_at(block.base()) };
        let outcome = self.lists.remove(node).and_then(|block| {
            let offset = range.base().get() - block.range().base().get();
            self.cut(block, offset, range.size())
        });
        self.health.note(outcome)
    }

    /// A block of the highest class that has any, which stays in the heap.
    pub(super) fn find_largest(&self) -> Option<Block> {
        self.lists.head(self.lists.highest()?)?.block(self.lists.key()).ok()
    }

    /// Takes from a block that serves whatever its address, or else from one of a
    /// few that happen to lie well.
    fn take_aligned(&mut self, min: usize, max: usize, align: Align) -> Result<Option<Block>, Damaged> {
        let padded = round_up(min.saturating_add(align.get() - GRANULE));
        let ample = padded.and_then(|padded| self.lists.first_from(class_of(padded)));
        let node = if ample.is_some() { ample } else { self.lucky(min, align)? };
        let Some(node) = node else { return Ok(None) };
        let block = self.remove(node, min)?;
        let Some(offset) = offset_in(block, min, align) else {
            aver!(false, "{block:?} was found for {min} bytes aligned to {align:?}");
            return Ok(None);
        };
        self.cut(block, offset, (block.size() - offset).min(max)).map(Some)
    }

    /// Finds a block in which `min` bytes fit, aligned, among the first.
    fn lucky(&self, min: usize, align: Align) -> Result<Option<Node>, Damaged> {
        let mut class = self.lists.class_from(class_of(min));
        let mut looks = 0;
        while let Some(here) = class {
            let mut next = self.lists.head(here);
            while let Some(node) = next {
                if offset_in(node.block(self.lists.key())?, min, align).is_some() {
                    return Ok(Some(node));
                }
                looks += 1;
                if looks == LOOKS {
                    return Ok(None);
                }
                next = node.link(Link::Next, self.lists.key())?;
            }
            class = self.lists.class_from(here + 1);
        }
        Ok(None)
    }

    /// Returns `size` bytes of a block that was just taken off its list, and lists
    /// what is left on either side.
    #[inline]
    fn cut(&mut self, block: Block, offset: usize, size: usize) -> Result<Block, Damaged> {
        self.size -= size;
        let Some((front, rest)) = block.split_at(offset) else { return Err(Damaged) };
        let Some((given, back)) = rest.split_at(size) else { return Err(Damaged) };
        if front.size() == 0 {
            self.edges.remove(addr_of(block.base()));
        } else {
            // SAFETY: free memory of the pool, and the block's first edge is its own.
            unsafe { self.lists.insert(front) }?;
            self.edges.insert(addr_of(front.limit()) - GRANULE);
        }
        if back.size() == 0 {
            self.edges.remove(addr_of(block.limit()) - GRANULE);
        } else {
            // SAFETY: free memory of the pool, and the block's last edge is its own.
            unsafe { self.lists.insert(back) }?;
            self.edges.insert(addr_of(back.base()));
        }
        Ok(given)
    }

    /// The bytes in all blocks.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// The least size of the highest class that has blocks, in bytes: what can be taken in one
    /// piece. This is exact, because allocations are rounded up to the least size of a class.
    pub(super) fn largest(&self) -> usize {
        self.lists.highest().map_or(0, least_size)
    }

    /// Shows every edge, in address order, as if a block began there.
    pub(super) fn walk_edges(&self, visit: &mut dyn FnMut(Node)) {
        // Some block has edges, and its pointer the provenance of the range.
        let Some(any) = self.lists.highest().and_then(|class| self.lists.head(class)) else { return };
        self.edges.walk(&mut |addr| {
            if let Some(addr) = NonZeroUsize::new(addr.get()) {
                visit(any.with_addr(addr));
            }
        });
    }
}

/// Where in a block `min` aligned bytes begin, if they fit.
fn offset_in(block: Block, min: usize, align: Align) -> Option<usize> {
    offset_of(block.range().base(), block.size(), min, align)
}

#[inline]
fn addr_of(pointer: NonNull<u8>) -> usize {
    pointer.addr().get()
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::tlsf::{Tlsf, TlsfOptions};
    use tripoint_core::{ClientArena, ClientArenaOptions};

    /// If one of two blocks holds all units that are asked for, all are taken from one block, however near the other
    /// comes.
    #[test]
    fn units_are_taken_together_if_a_block_holds_them() {
        const SIZE: usize = 64 << 10;
        let mut memory = std::boxed::Box::new_uninit_slice(4 * SIZE);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
        pool.extend(SIZE).unwrap();
        let mut free = pool.granules.free.lock();
        let heap = free.memory();
        let granule = Align::new(GRANULE).unwrap();
        let all = heap.take(SIZE, SIZE, granule).unwrap().unwrap();
        let counts = if cfg!(miri) { 240..245 } else { 1..300 };
        for (unit, count) in counts.flat_map(|count| [(GRANULE, count), (3 * GRANULE, count)]) {
            let wanted = unit * count;
            for lacking in 1..wanted.div_ceil(GRANULE).min(8) {
                // A block that is a little too small, and one that is large enough, apart from each other.
                let (near, rest) = all.split_at(wanted - lacking * GRANULE).unwrap();
                let (_, ample) = rest.split_at(GRANULE).unwrap();
                for block in [ample, near] {
                    // SAFETY: granules of the pool that were taken above, and that nothing uses.
                    unsafe { heap.insert(block) }.unwrap();
                }
                let taken = heap.take_units_together(unit, count).unwrap().unwrap();
                assert_eq!(taken.size(), wanted, "{count} units of {unit}, beside {}", near.size());
                // SAFETY: taken just now, unused.
                unsafe { heap.insert(taken) }.unwrap();
                while heap.take(GRANULE, SIZE, granule).unwrap().is_some() {}
            }
        }
    }
}
