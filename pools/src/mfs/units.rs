//! Free units: lists through their first words, and the run never used.

use core::mem;
use core::ptr::NonNull;

use tripoint_core::Block;

/// The first word of a free unit.
#[derive(Debug)]
#[repr(transparent)]
pub struct FreeUnit {
    next: Link,
}

/// The next free unit of a list, if there is one.
pub(crate) type Link = Option<NonNull<FreeUnit>>;

impl FreeUnit {
    /// The link of a free unit.
    ///
    /// # Safety
    /// - `unit` is free and starts with its link, and is the caller's to read.
    #[inline(always)]
    pub(crate) unsafe fn next(unit: NonNull<Self>) -> Link {
        // SAFETY: the caller's duty: a unit that begins with a link.
        unsafe { unit.read() }.next
    }

    /// Writes a link into a unit, which makes it a free one.
    ///
    /// # Safety
    /// - `unit` is a unit that nobody uses: room for a word, and aligned for it.
    #[inline(always)]
    pub(crate) unsafe fn link(unit: NonNull<u8>, next: Link) -> NonNull<Self> {
        let unit = unit.cast::<Self>();
        // SAFETY: the caller's duty: writable, aligned, and nobody's.
        unsafe { unit.write(Self { next }) };
        unit
    }
}

/// A list of free units, which belong to whoever holds it. Dropping it loses them.
#[derive(Debug, Default)]
pub struct UnitList {
    first: Link,
}

// SAFETY: free units belong to whoever holds the list, and to no thread.
unsafe impl Send for UnitList {}

impl UnitList {
    /// No units.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None }
    }

    /// The list that begins with this unit.
    ///
    /// # Safety
    /// - The unit and all that follow it by their links are free, and the
    ///   caller's to give.
    pub(crate) const unsafe fn from_link(first: Link) -> Self {
        Self { first }
    }

    /// The first unit, which stays in the list.
    pub(crate) const fn first(&self) -> Link {
        self.first
    }

    /// Takes the first unit out.
    #[inline]
    pub fn pop(&mut self) -> Option<NonNull<u8>> {
        let unit = self.first?;
        // SAFETY: units in the list are free and begin with their link.
        self.first = unsafe { FreeUnit::next(unit) };
        Some(unit.cast())
    }

    /// Puts a unit before all others.
    ///
    /// # Safety
    /// - `unit` is a unit that nobody uses, and is in no list.
    #[inline]
    pub unsafe fn push(&mut self, unit: NonNull<u8>) {
        // SAFETY: the caller's duty: a unit that nobody uses.
        self.first = Some(unsafe { FreeUnit::link(unit, self.first) });
    }

    /// Puts a chain before all others.
    #[inline]
    pub(crate) fn push_chain(&mut self, chain: Chain) {
        // SAFETY: units of a chain are free, and the chain is given up.
        unsafe { FreeUnit::link(chain.last.cast(), self.first) };
        self.first = Some(chain.first);
    }

    /// Takes up to `most` units out, in their order; `None` where there are none.
    pub(crate) fn take(&mut self, most: usize) -> Option<Chain> {
        let first = self.first?;
        let (mut last, mut count) = (first, 1);
        while count < most {
            // SAFETY: units in the list are free and begin with their link.
            let Some(next) = (unsafe { FreeUnit::next(last) }) else { break };
            (last, count) = (next, count + 1);
        }
        // SAFETY: as above.
        self.first = unsafe { FreeUnit::next(last) };
        Some(Chain { first, last, count })
    }

    /// The number of units: it walks the list.
    pub(crate) fn count(&self) -> usize {
        let (mut next, mut count) = (self.first, 0);
        while let Some(unit) = next {
            // SAFETY: units in the list are free and begin with their link.
            next = unsafe { FreeUnit::next(unit) };
            count += 1;
        }
        count
    }

    /// Sorts the units by address: n log n steps, and no memory but the units'.
    ///
    /// Sorted lists of 1, 2, 4 ... units are merged as a counter carries.
    pub(crate) fn sort(&mut self) {
        let mut sorted: [Self; usize::BITS as usize] = [const { Self::new() }; usize::BITS as usize];
        while let Some(unit) = self.pop() {
            let mut carry = Self::new();
            // SAFETY: just taken out of the list.
            unsafe { carry.push(unit) };
            for place in &mut sorted {
                if place.first.is_none() {
                    *place = carry;
                    break;
                }
                carry = mem::take(place).merge(carry);
            }
        }
        for place in sorted {
            *self = mem::take(self).merge(place);
        }
    }

    /// Two sorted lists in one.
    fn merge(mut self, mut other: Self) -> Self {
        let mut merged: Option<Chain> = None;
        while let (Some(one), Some(two)) = (self.first, other.first) {
            let lower = if one < two { &mut self } else { &mut other };
            if let Some(unit) = lower.pop() {
                match &mut merged {
                    // SAFETY: just taken out of its list.
                    Some(chain) => unsafe { chain.append(unit) },
                    // SAFETY: as above.
                    None => merged = Some(unsafe { Chain::of(unit) }),
                }
            }
        }
        let mut rest = if self.first.is_some() { self } else { other };
        if let Some(chain) = merged {
            rest.push_chain(chain);
        }
        rest
    }
}

/// One or more free units linked together, which belong to whoever holds it: its
/// first and last are known, so that it goes into a list in one step.
#[derive(Debug)]
pub struct Chain {
    first: NonNull<FreeUnit>,
    last: NonNull<FreeUnit>,
    count: usize,
}

// SAFETY: free units belong to whoever holds the chain, and to no thread.
unsafe impl Send for Chain {}

impl Chain {
    /// A chain of one unit.
    ///
    /// # Safety
    /// - `unit` is a unit that nobody uses, and is in no list.
    #[must_use]
    pub unsafe fn of(unit: NonNull<u8>) -> Self {
        // SAFETY: the caller's duty.
        let unit = unsafe { FreeUnit::link(unit, None) };
        Self { first: unit, last: unit, count: 1 }
    }

    /// The units of a run, in their order; `None` where there is none.
    ///
    /// # Safety
    /// - `run` is whole units of `unit` bytes that nobody uses.
    pub(crate) unsafe fn of_run(run: Block, unit: usize) -> Option<Self> {
        let mut chain: Option<Self> = None;
        for offset in (0..run.size()).step_by(unit).rev() {
            // SAFETY: the offset of a unit in the run.
            let base = unsafe { run.base().add(offset) };
            match &mut chain {
                // SAFETY: a unit of the run, which nobody uses.
                Some(chain) => unsafe { chain.push(base) },
                // SAFETY: as above.
                None => chain = Some(unsafe { Self::of(base) }),
            }
        }
        chain
    }

    /// Puts a unit before all others.
    ///
    /// # Safety
    /// - `unit` is a unit that nobody uses, and is in no list.
    #[inline]
    pub unsafe fn push(&mut self, unit: NonNull<u8>) {
        // SAFETY: the caller's duty.
        self.first = unsafe { FreeUnit::link(unit, Some(self.first)) };
        self.count += 1;
    }

    /// Puts a unit after all others.
    ///
    /// # Safety
    /// - `unit` is a unit that nobody uses, and is in no list.
    unsafe fn append(&mut self, unit: NonNull<u8>) {
        // SAFETY: the caller's duty.
        let unit = unsafe { FreeUnit::link(unit, None) };
        // SAFETY: the last unit is free and the chain's.
        unsafe { FreeUnit::link(self.last.cast(), Some(unit)) };
        self.last = unit;
        self.count += 1;
    }

    /// The number of units.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The first unit, which stays in the chain.
    pub(crate) const fn first(&self) -> NonNull<FreeUnit> {
        self.first
    }

    /// The last unit, which stays in the chain.
    pub(crate) const fn last(&self) -> NonNull<FreeUnit> {
        self.last
    }
}

/// The free units of a pool: those freed before, and those never used.
pub(crate) struct FreeUnits {
    list: UnitList,
    listed: usize,
    run: Block,
}

impl FreeUnits {
    pub(crate) const fn new() -> Self {
        // SAFETY: any pointer is valid for no bytes.
        let run = unsafe { Block::new(NonNull::dangling(), 0) };
        Self { list: UnitList::new(), listed: 0, run }
    }

    /// The units freed before.
    pub(crate) const fn list(&self) -> &UnitList {
        &self.list
    }

    /// How many units were freed before.
    pub(crate) const fn listed(&self) -> usize {
        self.listed
    }

    /// The units never used.
    pub(crate) const fn run(&self) -> Block {
        self.run
    }

    /// Whether no unit is free.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.listed == 0 && self.run.size() == 0
    }

    /// Bytes in free units of this size.
    pub(crate) fn size(&self, unit: usize) -> usize {
        self.listed * unit + self.run.size()
    }

    /// Takes the unit freed last.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NonNull<u8>> {
        let unit = self.list.pop()?;
        self.listed -= 1;
        Some(unit)
    }

    /// Lists a unit.
    ///
    /// # Safety
    /// - `unit` is a unit of the pool that nobody uses, and is not listed.
    #[inline]
    pub(crate) unsafe fn push(&mut self, unit: NonNull<u8>) {
        // SAFETY: the caller's duty.
        unsafe { self.list.push(unit) };
        self.listed += 1;
    }

    /// Lists the units of a chain.
    pub(crate) fn push_chain(&mut self, chain: Chain) {
        self.listed += chain.count;
        self.list.push_chain(chain);
    }

    /// Takes up to `most` of the units freed last.
    pub(crate) fn take(&mut self, most: usize) -> Option<Chain> {
        let chain = self.list.take(most)?;
        self.listed -= chain.count;
        Some(chain)
    }

    /// Takes the unit freed last, of `unit` bytes, and those listed after it for
    /// as long as each touches the ones before it, up to `most` bytes
    /// (design/pool-mfs.md `.mfs.neighbours`).
    pub(crate) fn take_neighbours(&mut self, unit: usize, most: usize) -> Option<Block> {
        let (mut base, mut size) = (self.pop()?, unit);
        while let Some(next) = self.list.first.filter(|_| size + unit <= most) {
            let below = next.addr().get() + unit == base.addr().get();
            let above = base.addr().get() + size == next.addr().get();
            if !below && !above {
                break;
            }
            self.pop();
            base = if below { next.cast() } else { base };
            size += unit;
        }
        // SAFETY: touching units that were free, out of the list now; they lie in
        // one extent or in several that the arena gave from the same range.
        Some(unsafe { Block::new(base, size) })
    }

    /// Makes an extent the run, which has to be empty. What makes no whole unit at
    /// its end is left out.
    pub(crate) fn extend(&mut self, extent: Block, unit: usize) {
        let whole = extent.size() - extent.size() % unit;
        self.run = extent.split_at(whole).map_or(self.run, |(run, _)| run);
    }

    /// Cuts the first bytes off the run, if it has as many.
    #[inline]
    pub(crate) fn cut(&mut self, size: usize) -> Option<Block> {
        let (units, run) = self.run.split_at(size)?;
        self.run = run;
        Some(units)
    }

    /// Puts units back: before the run they were cut from, in place of an empty
    /// run, or else in the list, so that they come out in address order.
    ///
    /// # Safety
    /// - `units` is whole units of `unit` bytes of the pool that nobody uses.
    pub(crate) unsafe fn put(&mut self, units: Block, unit: usize) {
        if self.run.size() == 0 {
            self.run = units;
        } else if units.limit() == self.run.base() {
            // SAFETY: the two touch, and lie in one extent or in two that the arena
            // gave from the same range.
            self.run = unsafe { Block::new(units.base(), units.size() + self.run.size()) };
        // SAFETY: the caller's duty: whole units that nobody uses.
        } else if let Some(chain) = unsafe { Chain::of_run(units, unit) } {
            self.push_chain(chain);
        }
    }

    /// Shows every free unit of `unit` bytes, and the run, in the order of
    /// addresses. It sorts the list.
    pub(crate) fn walk(&mut self, unit: usize, visit: &mut dyn FnMut(Block)) {
        self.list.sort();
        let mut run = (self.run.size() != 0).then_some(self.run);
        let mut next = self.list.first;
        while let Some(listed) = next {
            if let Some(run) = run.take_if(|run| run.base() < listed.cast()) {
                visit(run);
            }
            // SAFETY: units in the list are free, and as large as the unit says.
            visit(unsafe { Block::new(listed.cast(), unit) });
            // SAFETY: as above; a free unit begins with its link.
            next = unsafe { FreeUnit::next(listed) };
        }
        if let Some(run) = run {
            visit(run);
        }
    }
}
