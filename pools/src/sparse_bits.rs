//! A bit for each unit of an arena's range, in memory of the arena's own.
//!
//! Pages of bits, below as many levels of directories as the range needs, which is
//! the same for every address and never changes. Only what was covered has pages
//! (design/pool-tlsf.md `.tlsf.bits`).

mod place;

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Addr, AddrRange, Arena, Error, PoolHeader, Result, aver};

use place::{BITS, FAN, PAGE_BITS, bit_of, slot_of, word_of};

/// A page or, above the lowest level, a directory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Node {
    bits: [usize; FAN],
    below: [Option<NonNull<Node>>; FAN],
}

const NODE: Layout = Layout::new::<Node>();

/// How many pages are remembered: those of 16 MiB that lie together, with granules and words of 64 bits.
const REMEMBERED: usize = BITS * BITS / 16;

/// A sparse set of addresses, one bit for each `STRIDE` bytes of an arena's range.
#[derive(Debug)]
pub(crate) struct SparseBits<const STRIDE: usize> {
    /// The unit that the first bit is for, counted from address zero.
    first: usize,
    units: usize,
    /// The levels of directories above the pages.
    levels: u32,
    root: Option<NonNull<Node>>,
    nodes: usize,
    /// The pages that were found last, with their numbers, each at its number modulo [`REMEMBERED`].
    found: [Option<(usize, NonNull<Node>)>; REMEMBERED],
}

/// A bit of a set.
///
/// Invariant: a word of a page, which stays as long as the set. Only the holder of
/// the set exclusively uses its bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bit {
    word: NonNull<usize>,
    mask: usize,
}

impl Bit {
    #[inline]
    fn in_page(page: NonNull<Node>, bit: usize) -> Self {
        let (index, mask) = word_of(bit);
        // SAFETY: the index is below the number of words of a page.
        let word = unsafe { page.cast::<usize>().add(index) };
        Self { word, mask }
    }

    /// Whether it is set.
    #[inline]
    pub(crate) fn is_set(self) -> bool {
        // SAFETY: the invariant of the type.
        unsafe { self.word.read() & self.mask != 0 }
    }

    /// Sets it.
    #[inline]
    pub(crate) fn set(self) {
        // SAFETY: the invariant of the type.
        unsafe { self.word.write(self.word.read() | self.mask) };
    }

    /// Clears it.
    #[inline]
    pub(crate) fn clear(self) {
        // SAFETY: the invariant of the type.
        unsafe { self.word.write(self.word.read() & !self.mask) };
    }
}

// SAFETY: the nodes belong to the holder of this, and to no thread.
unsafe impl<const STRIDE: usize> Send for SparseBits<STRIDE> {}

impl<const STRIDE: usize> SparseBits<STRIDE> {
    /// No bits set, for an arena of this range. Takes no memory yet.
    pub(crate) fn new(range: AddrRange) -> Self {
        let first = range.base().get() / STRIDE;
        let units = range.limit().get().div_ceil(STRIDE) - first;
        let (mut levels, mut pages) = (0, units.div_ceil(PAGE_BITS));
        while pages > 1 {
            pages = pages.div_ceil(FAN);
            levels += 1;
        }
        Self { first, units, levels, root: None, nodes: 0, found: [None; REMEMBERED] }
    }

    /// The bytes of pages and directories.
    pub(crate) const fn size(&self) -> usize {
        self.nodes * NODE.size()
    }

    /// The levels of directories.
    pub(crate) const fn levels(&self) -> u32 {
        self.levels
    }

    /// Makes sure that every unit of a range has its bit.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`]. What was made until then stays.
    pub(crate) fn cover<A: Arena>(&mut self, range: AddrRange, header: &PoolHeader<A>) -> Result<()> {
        let mut rest = range;
        while let Some(gap) = self.find_gap(&mut rest)? {
            let node = new_node(header)?;
            self.fill(gap, node);
        }
        Ok(())
    }

    /// The first gap below the bits of `rest`, from which the part in front of the gap is taken off.
    ///
    /// # Errors
    /// [`Error::Limit`] for a range that is not in the arena.
    pub(crate) fn find_gap(&self, rest: &mut AddrRange) -> Result<Option<Gap>> {
        while !rest.is_empty() {
            let bit = self.bit_of(rest.base().get());
            aver!(bit.is_some(), "{rest} is not in the arena");
            let bit = bit.ok_or(Error::Limit)?;
            let gap = self.gap_above(bit);
            if gap.is_some() {
                return Ok(gap);
            }
            let page_limit = rest.base().get() + (PAGE_BITS - bit % PAGE_BITS) * STRIDE;
            let base = Addr::new(page_limit.min(rest.limit().get()));
            *rest = AddrRange::new(base, rest.limit()).ok_or(Error::Limit)?;
        }
        Ok(None)
    }

    /// The topmost node that is missing above a bit, or its page.
    fn gap_above(&self, bit: usize) -> Option<Gap> {
        let Some(mut node) = self.root else { return Some(Gap { bit, level: self.levels }) };
        for level in (0..self.levels).rev() {
            // SAFETY: a directory of this set, which nothing changes meanwhile;
            // `slot_of` stays below the number of its entries.
            match unsafe { (&(*node.as_ptr()).below)[slot_of(bit, level)] } {
                Some(below) => node = below,
                None => return Some(Gap { bit, level }),
            }
        }
        None
    }

    /// Puts a new node in the gap that was found last.
    pub(crate) fn fill(&mut self, gap: Gap, new: NonNull<Node>) {
        let mut entry = &mut self.root;
        for level in (gap.level..self.levels).rev() {
            let Some(node) = *entry else { return };
            // SAFETY: a directory of this set, which the exclusive borrow keeps to
            // this thread; `slot_of` stays below the number of its entries.
            entry = unsafe { &mut (&mut (*node.as_ptr()).below)[slot_of(gap.bit, level)] };
        }
        *entry = Some(new);
        self.nodes += 1;
    }

    /// The bit of the unit at `addr`; none if it was not covered.
    #[inline]
    pub(crate) fn find(&mut self, addr: usize) -> Option<Bit> {
        let bit = self.bit_of(addr)?;
        let number = bit / PAGE_BITS;
        let page = match self.found[number % REMEMBERED] {
            Some((found, page)) if found == number => page,
            _ => self.remember(bit)?,
        };
        Some(Bit::in_page(page, bit))
    }

    /// Finds the page of a bit by the directories, and remembers it.
    #[cold]
    fn remember(&mut self, bit: usize) -> Option<NonNull<Node>> {
        let (number, page) = (bit / PAGE_BITS, self.page_of(bit)?);
        self.found[number % REMEMBERED] = Some((number, page));
        Some(page)
    }

    /// As [`SparseBits::find`], without remembering the page.
    pub(crate) fn find_shared(&self, addr: usize) -> Option<Bit> {
        let bit = self.bit_of(addr)?;
        self.page_of(bit).map(|page| Bit::in_page(page, bit))
    }

    /// Sets the bit of the unit at `addr`, which has to be covered.
    #[inline]
    pub(crate) fn insert(&mut self, addr: usize) {
        if let Some(bit) = self.find(addr) {
            bit.set();
        }
    }

    /// Clears the bit of the unit at `addr`.
    #[inline]
    pub(crate) fn remove(&mut self, addr: usize) {
        if let Some(bit) = self.find(addr) {
            bit.clear();
        }
    }

    #[inline]
    fn bit_of(&self, addr: usize) -> Option<usize> {
        bit_of(addr, STRIDE, self.first, self.units)
    }

    /// The page that has a bit: one step for each level.
    fn page_of(&self, bit: usize) -> Option<NonNull<Node>> {
        let mut node = self.root?;
        for level in (0..self.levels).rev() {
            // SAFETY: a directory of this set, which nothing changes meanwhile;
            // `slot_of` stays below the number of its entries.
            node = unsafe { (&(*node.as_ptr()).below)[slot_of(bit, level)] }?;
        }
        Some(node)
    }

    /// The number of bits that are set.
    pub(crate) fn count(&self) -> usize {
        self.root.map_or(0, |root| count_below(root, self.levels))
    }

    /// Shows the address of every unit whose bit is set, in order.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(Addr)) {
        if let Some(root) = self.root {
            walk_below(root, self.levels, self.first, &mut |unit| visit(Addr::new(unit * STRIDE)));
        }
    }

    /// Returns the memory to the arena.
    pub(crate) fn destroy<A: Arena>(&mut self, header: &PoolHeader<A>) {
        if let Some(root) = self.root.take() {
            destroy_below(root, self.levels, header);
        }
    }
}

/// A node that is missing: at this level, above this bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    bit: usize,
    level: u32,
}

/// A new node for a gap: an empty page or directory, which is all zero. A page takes no memory of the system before a bit of
/// it is set, if the arena can do that. The set is not needed for it, and so not locked.
///
/// # Errors
/// Those of [`Arena::alloc_zeroed_descriptor`].
pub(crate) fn new_node<A: Arena>(header: &PoolHeader<A>) -> Result<NonNull<Node>> {
    Ok(header.alloc_zeroed_descriptor(NODE)?.cast())
}

/// The nodes below a directory.
fn below(node: NonNull<Node>) -> impl DoubleEndedIterator<Item = (usize, NonNull<Node>)> {
    // SAFETY: a directory, whose entries are written when it is made.
    let entries = unsafe { node.as_ref().below };
    entries.into_iter().enumerate().filter_map(|(slot, entry)| entry.map(|entry| (slot, entry)))
}

/// The words of a page.
fn words(node: NonNull<Node>) -> [usize; FAN] {
    // SAFETY: a page, whose words are written when it is made.
    unsafe { node.as_ref().bits }
}

/// Recurses as deep as there are levels.
fn count_below(node: NonNull<Node>, level: u32) -> usize {
    if level == 0 {
        return words(node).into_iter().map(|word| word.count_ones() as usize).sum();
    }
    below(node).map(|(_, entry)| count_below(entry, level - 1)).sum()
}

/// Recurses as deep as there are levels; `first` is the unit of the first bit.
fn walk_below(node: NonNull<Node>, level: u32, first: usize, visit: &mut dyn FnMut(usize)) {
    if level == 0 {
        for (index, mut word) in words(node).into_iter().enumerate() {
            while word != 0 {
                let bit = index * BITS + word.trailing_zeros() as usize;
                visit(first + bit);
                word &= word - 1;
            }
        }
        return;
    }
    let span = PAGE_BITS << ((level - 1) * FAN.trailing_zeros());
    for (slot, entry) in below(node) {
        walk_below(entry, level - 1, first + slot * span, visit);
    }
}

/// Recurses as deep as there are levels.
fn destroy_below<A: Arena>(node: NonNull<Node>, level: u32, header: &PoolHeader<A>) {
    if level != 0 {
        below(node).for_each(|(_, entry)| destroy_below(entry, level - 1, header));
    }
    // SAFETY: from `new_node`, once, and nothing uses the set any more.
    unsafe { header.arena().free_descriptor(node.cast(), NODE) };
}
