//! A land: a set of free blocks, kept in the free memory itself.
//!
//! Blocks are found first fit, in the order of addresses, and neighbours
//! coalesce. Every operation takes time in proportion to the logarithm of the
//! number of blocks, in the worst case, and no memory but the blocks' own
//! (design/land.md `.land`, `.req.log`, `.req.inside`).

mod check;
mod node;
mod tree;

#[cfg(test)]
mod tests;

use core::alloc::Layout;

use tripoint_core::{Addr, AddrRange, Align, Arena, Block, PoolHeader};

pub use node::GRANULE;
pub(crate) use node::NODE_SIZE;
use node::{GRANULES, Node, RUNS};
use tree::{Path, Position, Tree};

use crate::link::{Damaged, Health, LinkKey, Watch};
use crate::placement::{LOOKS, aligned_range, ample_size};

/// The alignment every block of a land has.
const GRANULE_ALIGN: Align = Align::new(GRANULE).unwrap();

/// A set of free blocks.
///
/// ```text
/// size == the sum of all blocks in `granules` and `runs`
/// no two blocks touch or overlap
/// granules: size == GRANULE          runs: size >= 2 * GRANULE
/// ```
///
/// Two trees hold them: blocks of one granule, whose two words are just enough
/// for links, and runs of two granules or more, which also say how long they are
/// and what the largest block below them is (design/land.md `.land.trees`).
///
/// With the feature `hardening`, a land that meets words in free memory that it did
/// not write returns nothing and keeps nothing from then on: what is inserted is
/// lost, and all else finds nothing (design/hardening.md `.land`).
#[doc(alias("free list", "first fit", "coalescing"))]
#[derive(Debug)]
pub struct Land {
    granules: Tree<GRANULES>,
    runs: Tree<RUNS>,
    size: usize,
    key: LinkKey,
    health: Health,
}

// SAFETY: a land owns its blocks: nothing else touches them (`Land::insert`), so
// whichever thread holds the land may.
unsafe impl Send for Land {}

impl Land {
    /// The most that a land writes to a free block, in bytes from its base.
    pub const NODE_SIZE: usize = NODE_SIZE;

    /// A land without blocks, for those of this pool.
    #[must_use]
    pub fn new<A: Arena>(header: &PoolHeader<A>) -> Self {
        Self::with_key(LinkKey::of(header))
    }

    /// A land without blocks.
    const fn with_key(key: LinkKey) -> Self {
        Self { granules: Tree::new(), runs: Tree::new(), size: 0, key, health: Health::new() }
    }

    /// Refuses once the land met free memory that was written over.
    pub(crate) fn ensure_sound(&self) -> Result<(), Damaged> {
        self.health.ensure()
    }

    /// Notes what was met in other memory of the pool.
    pub(crate) fn note<T>(&self, outcome: Result<T, Damaged>) -> Result<T, Damaged> {
        self.health.note(outcome)
    }

    /// The key with which nodes are read, and where damage is noted.
    #[inline]
    const fn watch(&self) -> Watch<'_> {
        Watch::new(self.key, &self.health)
    }

    /// What an operation found, unless it met damage.
    #[inline]
    fn trusted<T>(&self, found: Option<T>) -> Option<T> {
        if self.health.ensure().is_ok() { found } else { None }
    }

    /// The size that an allocation of `size` bytes takes: whole granules, at
    /// least one. `None` above `isize::MAX`.
    #[inline]
    #[must_use]
    pub const fn granules(size: usize) -> Option<usize> {
        match GRANULE_ALIGN.round_up(if size == 0 { 1 } else { size }) {
            Some(size) if size <= isize::MAX as usize => Some(size),
            _ => None,
        }
    }

    /// The bytes in all blocks.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The number of blocks.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.granules.count() + self.runs.count()
    }

    /// The size of the largest block, in bytes; zero if there is none.
    /// Constant time (design/land.md `.req.largest`).
    #[must_use]
    pub fn largest(&self) -> usize {
        self.runs.largest(self.watch()).max(self.granules.largest(self.watch()))
    }

    /// Adds a block, and coalesces it with the blocks that touch it. Returns the free block
    /// that it is part of now. Does nothing for a size of zero. With the feature
    /// `hardening`, does nothing for a block that overlaps a free one either, and counts
    /// that as damage.
    ///
    /// # Safety
    /// - `block` is a multiple of [`GRANULE`] in address and size, and overlaps no
    ///   block of the land.
    /// - From now on, until the land returns it, nothing else touches it and it stays
    ///   valid for reads and writes. What lies behind the first [`Land::NODE_SIZE`] bytes
    ///   of each free block is left as it is, for the holder of the land to use.
    /// - Its pointer may be used for every block of the land that touches it: all
    ///   blocks come from one range of one arena, and point to them with the
    ///   provenance of the range (design/land.md `.land.provenance`).
    pub unsafe fn insert(&mut self, block: Block) -> Block {
        if block.size() == 0 || self.health.ensure().is_err() {
            return block;
        }
        let watch = Watch::new(self.key, &self.health);
        // A block that overlaps free memory is not inserted.
        let has_no_granule = |_| {
            let next = self.granules.first_from(base_of(block), watch);
            next.is_none_or(|next| limit_of(block) <= next.addr())
        };
        if !watch.accepts(has_no_granule) {
            return block;
        }
        let size = block.size();
        self.size += size;
        let block = self.join_granules(block);
        let watch = Watch::new(self.key, &self.health);
        let mut at = Position::new();
        self.runs.locate(base_of(block), &mut at, watch);
        let is_apart = |_| {
            at.before().is_none_or(|before| before.limit(watch) <= base_of(block))
                && at.after().is_none_or(|after| limit_of(block) <= after.addr())
        };
        if !watch.accepts(is_apart) {
            self.size -= size;
            return block;
        }
        let left =
            at.before().filter(|left| left.limit(watch) == base_of(block)).map(|left| left.block(watch));
        let right =
            at.after().filter(|right| right.addr() == limit_of(block)).map(|right| right.block(watch));
        let block = left.map_or(block, |left| join(left, block));
        let block = right.map_or(block, |right| join(block, right));
        if left.is_some() {
            // SAFETY: free memory of the land, two granules or more. The left
            // neighbour keeps its address, so the path to the right one stands.
            unsafe { self.runs.replace(at.path_before(), block, watch) };
            if right.is_some() {
                self.runs.remove(at.path_after(), watch);
            }
        } else if right.is_some() {
            // SAFETY: free memory of the land, two granules or more; nothing lies
            // between the right neighbour and the block that now reaches it.
            unsafe { self.runs.replace(at.path_after(), block, watch) };
        } else if block.size() > GRANULE {
            // SAFETY: free memory of the land, two granules or more.
            unsafe { self.runs.insert(at.path(), block, watch) };
        } else {
            // SAFETY: free memory of the land, one granule.
            unsafe {
                let mut at = Position::new();
                self.granules.insert(
                    self.granules.locate(base_of(block), &mut at, watch).path(),
                    block,
                    watch,
                )
            };
        }
        block
    }

    /// Whether a block overlaps one of the land.
    pub(crate) fn overlaps(&self, block: Block) -> bool {
        let (base, limit, watch) = (base_of(block), limit_of(block), self.watch());
        let begins_inside = self.first_from(base).is_some_and(|next| base_of(next) < limit);
        let mut at = Position::new();
        self.runs.locate(base, &mut at, watch);
        begins_inside || at.before().is_some_and(|before| before.limit(watch) > base)
    }

    /// Takes out the first block for `layout`, rounded up to granules.
    ///
    /// Aligned above the granule, it may pass over a block that would have served
    /// by the luck of its address (design/land.md `.land.align`).
    #[must_use]
    pub fn take_first(&mut self, layout: Layout) -> Option<Block> {
        let size = Self::granules(layout.size())?;
        self.take_first_bounded(size, size, Align::of_layout(layout))
    }

    /// Takes out the first `min` bytes or more that lie together, at most `max`,
    /// from an address of this alignment. Both are rounded down to granules.
    #[must_use]
    pub fn take_first_bounded(&mut self, min: usize, max: usize, align: Align) -> Option<Block> {
        let min = GRANULE_ALIGN.round_down(min).max(GRANULE);
        let max = GRANULE_ALIGN.round_down(max).max(min);
        if let Some(block) = self.take_fit(min, min, max, align) {
            return Some(block);
        }
        if align <= GRANULE_ALIGN {
            return None;
        }
        let mut path = Path::new();
        let (block, range) = self.find_aligned(min, max, align, &mut path)?;
        self.cut(&mut path, block, range)
    }

    /// Takes as many units of `unit` bytes, rounded up to granules, as lie together at the beginning of the first
    /// block that has one: at most `count`, and at least one.
    #[must_use]
    pub fn take_units(&mut self, unit: usize, count: usize) -> Option<Block> {
        let unit = Self::granules(unit)?;
        let mut path = Path::new();
        let block = self.find_fit(unit, &mut path)?;
        if block.size() == GRANULE {
            return self.take_granule(base_of(block));
        }
        let size = (block.size() / unit).min(count.max(1)) * unit;
        self.cut(&mut path, block, AddrRange::with_size(block.range().base(), size)?)
    }

    /// The block that [`Land::take_first_bounded`] would take `min` bytes from, and
    /// leaves it where it is.
    #[must_use]
    pub fn find_first(&self, min: usize, align: Align) -> Option<Block> {
        let min = GRANULE_ALIGN.round_down(min).max(GRANULE);
        let holds = |block: &Block| aligned_range(block.range(), min, min, align).is_some();
        self.find_fit(min, &mut Path::new())
            .filter(holds)
            .or_else(|| Some(self.find_aligned(min, min, align, &mut Path::new())?.0))
    }

    /// The first of a few runs in which `min..=max` aligned bytes happen to fit, or else the first in which they fit wherever it
    /// lies; with what they take of it, and the path to it.
    #[cold]
    fn find_aligned(
        &self,
        min: usize,
        max: usize,
        align: Align,
        path: &mut Path<RUNS>,
    ) -> Option<(Block, AddrRange)> {
        let watch = self.watch();
        let fit = |node: Node<RUNS>| {
            let block = node.block(watch);
            Some((block, aligned_range(block.range(), min, max, align)?))
        };
        let mut next = self.runs.first_fit(min, path, watch);
        for _ in 0..LOOKS {
            let node = next?;
            if let Some(found) = fit(node) {
                return self.trusted(Some(found));
            }
            next = self.runs.next_fit(min, path, watch);
        }
        let padded = ample_size(min, align, GRANULE)?;
        let found = self.runs.first_fit(padded, path, watch).and_then(fit);
        self.trusted(found)
    }

    /// Returns the largest block, the first of several, and leaves it in the land.
    #[must_use]
    pub fn find_largest(&self) -> Option<Block> {
        self.find_fit(self.largest().max(GRANULE), &mut Path::new())
    }

    /// Takes exactly these addresses out, whole granules; `None`, and nothing is
    /// changed, unless they all lie in one block longer than a granule.
    #[must_use]
    pub fn take_range(&mut self, range: AddrRange) -> Option<Block> {
        let mut at = Position::new();
        self.runs.locate(range.limit().get(), &mut at, self.watch());
        let block = at.before()?.block(self.watch());
        let block = self.trusted(Some(block).filter(|block| block.range().covers(range)))?;
        self.cut(at.path_before(), block, range)
    }

    /// Shows every block, in address order.
    ///
    /// `visit` must not touch the memory of the blocks.
    pub fn walk(&self, visit: &mut dyn FnMut(Block)) {
        let mut addr = 0;
        while let Some(block) = self.first_from(addr) {
            visit(block);
            addr = limit_of(block);
        }
    }

    /// The first block at or above an address.
    fn first_from(&self, addr: usize) -> Option<Block> {
        let watch = self.watch();
        let granule = self.granules.first_from(addr, watch).map(|node| node.block(watch));
        let run = self.runs.first_from(addr, watch).map(|node| node.block(watch));
        self.trusted(lower(granule, run))
    }

    /// The first block that has `fit` bytes, and the path to it if it is a run.
    fn find_fit(&self, fit: usize, path: &mut Path<RUNS>) -> Option<Block> {
        let watch = self.watch();
        let run = self.runs.first_fit(fit, path, watch).map(|node| node.block(watch));
        let granule = if fit == GRANULE { self.granules.first_from(0, watch) } else { None };
        self.trusted(lower(granule.map(|node| node.block(watch)), run))
    }

    /// Takes `min..=max` aligned bytes from the first block that has `fit`.
    fn take_fit(&mut self, fit: usize, min: usize, max: usize, align: Align) -> Option<Block> {
        let mut path = Path::new();
        let block = self.find_fit(fit, &mut path)?;
        let range = aligned_range(block.range(), min, max, align)?;
        if block.size() == GRANULE {
            return self.take_granule(base_of(block));
        }
        self.cut(&mut path, block, range)
    }

    /// Takes the granule at an address out, if it is a block of its own.
    fn take_granule(&mut self, addr: usize) -> Option<Block> {
        let watch = Watch::new(self.key, &self.health);
        let node = self.granules.first_from(addr, watch).filter(|node| node.addr() == addr)?;
        let block = node.block(watch);
        self.granules.remove(self.granules.locate(addr, &mut Position::new(), watch).path_after(), watch);
        self.size -= GRANULE;
        self.trusted(Some(block))
    }

    /// Takes the blocks of one granule that touch `block` out, and returns it
    /// together with them.
    fn join_granules(&mut self, block: Block) -> Block {
        let size = self.size;
        let left = self.take_granule(base_of(block).wrapping_sub(GRANULE));
        let right = self.take_granule(limit_of(block));
        self.size = size;
        let block = left.map_or(block, |left| join(left, block));
        right.map_or(block, |right| join(block, right))
    }

    /// Takes `range` out of `block`, the run at the end of the path; what is left
    /// on either side stays in the land.
    fn cut(&mut self, path: &mut Path<RUNS>, block: Block, range: AddrRange) -> Option<Block> {
        let (front, rest) = block.split_at(range.base().get() - base_of(block))?;
        let (given, back) = rest.split_at(range.size())?;
        self.size -= given.size();
        let watch = Watch::new(self.key, &self.health);
        if front.size() > GRANULE {
            // SAFETY: free memory of the land, two granules or more.
            unsafe { self.runs.replace(path, front, watch) };
            self.put(back);
        } else if back.size() > GRANULE {
            // SAFETY: free memory of the land, two granules or more.
            unsafe { self.runs.replace(path, back, watch) };
            self.put(front);
        } else {
            self.runs.remove(path, watch);
            self.put(front);
            self.put(back);
        }
        self.trusted(Some(given))
    }

    /// Adds what a cut left over, which touches no other block.
    fn put(&mut self, block: Block) {
        let addr = base_of(block);
        let watch = Watch::new(self.key, &self.health);
        match block.size() {
            0 => {}
            // SAFETY: free memory of the land, one granule.
            GRANULE => unsafe {
                let mut at = Position::new();
                self.granules.insert(self.granules.locate(addr, &mut at, watch).path(), block, watch)
            },
            // SAFETY: free memory of the land, two granules or more.
            _ => unsafe {
                let mut at = Position::new();
                self.runs.insert(self.runs.locate(addr, &mut at, watch).path(), block, watch);
            },
        }
    }
}

/// Of two blocks the one at the lower address.
fn lower(one: Option<Block>, other: Option<Block>) -> Option<Block> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.base() < other.base() { one } else { other }),
        (one, other) => one.or(other),
    }
}

/// Two blocks that touch, as one.
fn join(left: Block, right: Block) -> Block {
    // SAFETY: both are free memory of the land, the right one begins where the
    // left one ends, and the left one's pointer reaches both (`Land::insert`).
    unsafe { Block::new(left.base(), left.size() + right.size()) }
}

fn base_of(block: Block) -> usize {
    Addr::of(block.base().as_ptr()).get()
}

fn limit_of(block: Block) -> usize {
    Addr::of(block.limit().as_ptr()).get()
}
