//! A node of a tree, kept in the free block it stands for.
//!
//! ```text
//!   word   0        1         2      3
//!        +--------+---------+------+---------+----
//!        | left   | right   | size | largest | ... the rest of the block
//!        +--------+---------+------+---------+----
//!          \tag     \tag      only if SIZED
//! ```
//!
//! Blocks lie at multiples of a granule, so the low bits of a link are free: the
//! tag of the left link holds the low half of the node's height, that of the
//! right link the high half (design/land.md `.land.node`).
//!
//! If hardened, words are encoded, and one that makes no sense is noted and
//! taken for the most harmless there is: a leaf, of the least size
//! (design/hardening.md `.land`).

use core::ptr::{NonNull, null_mut, without_provenance_mut};

use tripoint_core::Block;

use crate::link::Watch;

/// The unit of a land, in bytes: two words, the least that holds a node. Blocks
/// are multiples of it in address and size.
pub const GRANULE: usize = 2 * size_of::<usize>();

/// The most that a land writes to a free block, in bytes from its base.
pub(crate) const NODE_SIZE: usize = size_of::<Words>();

const TAG_MASK: usize = GRANULE - 1;
const TAG_BITS: u32 = GRANULE.trailing_zeros();

/// More than the height of any tree of free blocks.
///
/// Two free blocks have a granule in use between them, so an address space holds
/// at most `2^BITS / (2 * GRANULE)` of them, and an AVL tree of `n` nodes is at
/// most `1.4405 * log2(n + 2)` high (design/land.md `.land.height`).
pub(super) const HEIGHT_MAX: usize = (usize::BITS as usize - 1 - TAG_BITS as usize) * 3 / 2;
const _: () = assert!(HEIGHT_MAX < 1 << (2 * TAG_BITS), "a height fits in two tags");

/// The kind of a node whose block is one granule.
pub(super) const GRANULES: bool = false;

/// The kind of a node whose block is a run of two granules or more.
pub(super) const RUNS: bool = true;

/// A side of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Lower addresses.
    Left,
    /// Higher addresses.
    Right,
}

impl Side {
    /// The other side.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// The words at the base of a free block. A block of one granule has only the
/// links, so nothing may ever form a reference to the whole.
#[repr(C)]
struct Words {
    links: [*mut Words; 2],
    size: *mut u8,
    largest: *mut u8,
}

/// What a node knows of its surroundings, as opposed to its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    links: [*mut Words; 2],
    largest: usize,
}

/// A free block that is, or is about to be, in a tree.
///
/// Without `SIZED` its size is one granule; with it, two or more.
///
/// Invariant: the words of the node are granule-aligned memory that is valid for
/// reads and writes and that only the land touches. [`Node::create`] is promised
/// it; code that takes a block out of a tree forgets its node.
#[derive(Debug)]
pub(super) struct Node<const SIZED: bool>(NonNull<Words>);

impl<const SIZED: bool> Clone for Node<SIZED> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const SIZED: bool> Copy for Node<SIZED> {}

impl<const SIZED: bool> PartialEq for Node<SIZED> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<const SIZED: bool> Node<SIZED> {
    /// Makes a leaf in the block.
    ///
    /// # Safety
    /// - `block` is granule-aligned, one granule in size or, if `SIZED`, a
    ///   greater multiple of it.
    /// - Nothing else touches it until it has left the tree.
    #[inline]
    pub(super) unsafe fn create(block: Block, watch: Watch<'_>) -> Self {
        let node = Self(block.base().cast());
        if SIZED {
            // SAFETY: a sized block has room for four words, aligned, ours.
            unsafe { write_size(&raw mut (*node.0.as_ptr()).size, block.size(), watch) };
        }
        let links = tag_with_height([null_mut(); 2], 1);
        node.set_place(Place { links, largest: block.size() }, watch);
        node
    }

    /// The address of the block.
    #[inline]
    pub(super) fn addr(self) -> usize {
        self.0.addr().get()
    }

    /// The other node, reached by the pointer to this one.
    pub(super) fn at(self, other: Self) -> Self {
        Self(self.0.with_addr(other.0.addr()))
    }

    /// One past the block's last address.
    #[inline]
    pub(super) fn limit(self, watch: Watch<'_>) -> usize {
        self.addr().wrapping_add(self.size(watch))
    }

    /// The size of the block, in bytes.
    #[inline]
    pub(super) fn size(self, watch: Watch<'_>) -> usize {
        if SIZED {
            // SAFETY: the invariant of the type; a sized node has four words.
            unsafe { read_size(&raw const (*self.0.as_ptr()).size, self.addr(), watch) }
        } else {
            GRANULE
        }
    }

    /// The size of the largest block at or below this node, in bytes.
    #[inline]
    pub(super) fn largest(self, watch: Watch<'_>) -> usize {
        if SIZED {
            // SAFETY: the invariant of the type; a sized node has four words.
            unsafe { read_size(&raw const (*self.0.as_ptr()).largest, 0, watch) }
        } else {
            GRANULE
        }
    }

    /// Returns the free block that the node lies in.
    #[inline]
    pub(super) fn block(self, watch: Watch<'_>) -> Block {
        self.confirm(watch);
        // SAFETY: the invariant of the type, for as long as the block is free; a caller that takes the
        // block out owns it from then on.
        unsafe { Block::new(self.0.cast(), self.size(watch)) }
    }

    /// If hardened, looks at the sizes, before they are written over.
    #[inline]
    pub(super) fn confirm(self, watch: Watch<'_>) {
        watch.accepts(|_| self.size(watch) <= self.largest(watch));
    }

    /// The child on one side.
    #[inline]
    pub(super) fn child(self, side: Side, watch: Watch<'_>) -> Option<Self> {
        let child = Self::behind(self.link(side, watch))?;
        watch.accepts(|_| child != self && self.side_of(child.addr()) == side).then_some(child)
    }

    /// The child on one side, to go on to on a way of `depth` nodes, this one
    /// included. Old words may lead in a circle: no way is longer than trees are
    /// high.
    #[inline]
    pub(super) fn descend(self, side: Side, depth: usize, watch: Watch<'_>) -> Option<Self> {
        let child = self.child(side, watch)?;
        watch.accepts(|_| depth < HEIGHT_MAX).then_some(child)
    }

    /// Hangs a child, or none, on one side.
    #[inline]
    pub(super) fn set_child(self, side: Side, child: Option<Self>, watch: Watch<'_>) {
        let mut links = self.links(watch);
        let link = &mut links[side as usize];
        *link = with_tag(Self::link_to(child), tag(*link));
        self.set_links(links, watch);
    }

    /// The side on which a node at another address hangs somewhere below.
    #[inline]
    pub(super) fn side_of(self, addr: usize) -> Side {
        if self.addr() < addr { Side::Right } else { Side::Left }
    }

    /// The number of nodes on the longest way down, this one included.
    #[inline]
    pub(super) fn height(self, watch: Watch<'_>) -> usize {
        height_of(self.links(watch))
    }

    /// Computes height and largest size again from those of the children. Returns
    /// the children's heights.
    #[inline]
    pub(super) fn refresh(self, watch: Watch<'_>) -> [usize; 2] {
        let children = self.links(watch).map(Self::behind);
        let heights = children.map(|child| child.map_or(0, |child| child.height(watch)));
        let largest = children.map(|child| child.map_or(0, |child| child.largest(watch)));
        let height = heights[0].max(heights[1]) + 1;
        self.set_links(tag_with_height(children.map(Self::link_to), height), watch);
        self.set_largest(self.size(watch).max(largest[0]).max(largest[1]), watch);
        heights
    }

    /// The links, height and largest size, to hand on to another node.
    #[inline]
    pub(super) fn place(self, watch: Watch<'_>) -> Place {
        Place { links: self.links(watch), largest: self.largest(watch) }
    }

    /// Takes over another node's links, height and largest size.
    #[inline]
    pub(super) fn set_place(self, place: Place, watch: Watch<'_>) {
        self.set_links(place.links, watch);
        self.set_largest(place.largest, watch);
    }

    #[inline]
    fn set_largest(self, largest: usize, watch: Watch<'_>) {
        if SIZED {
            // SAFETY: the invariant of the type; a sized node has four words.
            unsafe { write_size(&raw mut (*self.0.as_ptr()).largest, largest, watch) };
        }
    }

    #[inline]
    fn link(self, side: Side, watch: Watch<'_>) -> *mut Words {
        let link = watch.key.decode(self.slots()[side as usize], self.stored_links()[side as usize]);
        let is_sound = watch.accepts(|key| key.is_link(with_tag(link, 0).addr(), GRANULE));
        if is_sound { link } else { null_mut() }
    }

    #[inline]
    fn links(self, watch: Watch<'_>) -> [*mut Words; 2] {
        let [left, right] = self.stored_links();
        let [left_slot, right_slot] = self.slots();
        let links = [watch.key.decode(left_slot, left), watch.key.decode(right_slot, right)];
        let is_sound = watch.accepts(|key| {
            let lead = links.iter().all(|&link| key.is_link(with_tag(link, 0).addr(), GRANULE));
            lead && (1..=HEIGHT_MAX).contains(&height_of(links))
        });
        if is_sound { links } else { tag_with_height([null_mut(); 2], 1) }
    }

    #[inline]
    fn set_links(self, [left, right]: [*mut Words; 2], watch: Watch<'_>) {
        let [left_slot, right_slot] = self.slots();
        let links = [watch.key.encode(left_slot, left), watch.key.encode(right_slot, right)];
        // SAFETY: the invariant of the type; every node has its links.
        unsafe { (&raw mut (*self.0.as_ptr()).links).write(links) };
    }

    /// The links, as they are stored.
    #[inline]
    fn stored_links(self) -> [*mut Words; 2] {
        // SAFETY: the invariant of the type; every node has its links.
        unsafe { (&raw const (*self.0.as_ptr()).links).read() }
    }

    /// Where the links are stored.
    #[inline]
    fn slots(self) -> [usize; 2] {
        [self.addr(), self.addr() + size_of::<usize>()]
    }

    /// The node that a link leads to.
    #[inline]
    fn behind(link: *mut Words) -> Option<Self> {
        NonNull::new(with_tag(link, 0)).map(Self)
    }

    /// The link, without a tag, that leads to a node.
    #[inline]
    fn link_to(node: Option<Self>) -> *mut Words {
        node.map_or(null_mut(), |node| node.0.as_ptr())
    }
}

/// Reads a size. From `base`, if that is known, it ends in the range.
///
/// # Safety
/// - `slot` is a word of a node that has it.
#[inline]
unsafe fn read_size(slot: *const *mut u8, base: usize, watch: Watch<'_>) -> usize {
    // SAFETY: a word of a node: aligned, and valid for reads.
    let size = watch.key.decode(slot.addr(), unsafe { slot.read() }).addr();
    let is_sound =
        watch.accepts(|key| key.is_size(size, base) && size > GRANULE && size.is_multiple_of(GRANULE));
    if is_sound { size } else { 2 * GRANULE }
}

/// Writes a size.
///
/// # Safety
/// - `slot` is a word of a node that has it.
#[inline]
unsafe fn write_size(slot: *mut *mut u8, size: usize, watch: Watch<'_>) {
    // SAFETY: a word of a node: aligned, valid for writes, and touched by the land alone.
    unsafe { slot.write(watch.key.encode(slot.addr(), without_provenance_mut(size))) };
}

/// The height laid into the tags of links.
#[inline]
fn height_of([left, right]: [*mut Words; 2]) -> usize {
    tag(right) << TAG_BITS | tag(left)
}

#[inline]
fn tag(link: *mut Words) -> usize {
    link.addr() & TAG_MASK
}

#[inline]
fn with_tag(link: *mut Words, tag: usize) -> *mut Words {
    link.map_addr(|addr| addr & !TAG_MASK | tag)
}

/// A height laid into the tags of the links.
#[inline]
fn tag_with_height([left, right]: [*mut Words; 2], height: usize) -> [*mut Words; 2] {
    [with_tag(left, height & TAG_MASK), with_tag(right, height >> TAG_BITS)]
}
