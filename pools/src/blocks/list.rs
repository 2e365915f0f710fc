//! Free blocks in lists through their first words.
//!
//! What a block "that nothing uses" is, the [word](super::free_block) says.

use core::mem;
use core::ptr::NonNull;

use tripoint_core::Block;

use super::chain::Chain;
use super::free_block::{FreeBlock, Link};
use crate::link::{Damaged, Health, LinkKey, Watch};

/// A list of free units, which belong to the holder. Dropping it loses them.
#[derive(Debug)]
pub(crate) struct List {
    first: Link,
    key: LinkKey,
    health: Health,
}

// SAFETY: free units belong to the holder of the list, and to no thread.
unsafe impl Send for List {}

impl List {
    /// No units, and for units of the pool with this key.
    pub(crate) const fn of(key: LinkKey) -> Self {
        Self { first: None, key, health: Health::new() }
    }

    /// The list that begins with this unit.
    ///
    /// # Safety
    /// - The unit and all that follow it by their links are free, and the
    ///   caller's to give up.
    #[inline]
    pub(crate) const unsafe fn from_link(first: Link, key: LinkKey) -> Self {
        Self { first, key, health: Health::new() }
    }

    /// What the list is read with.
    #[inline]
    pub(crate) const fn watch(&self) -> Watch<'_> {
        Watch::new(self.key, &self.health)
    }

    /// Refuses once a link was met that was written over: the list ended there.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(crate) fn ensure_sound(&self) -> Result<(), Damaged> {
        self.health.ensure()
    }

    /// Notes what was met elsewhere.
    #[inline]
    pub(crate) fn note(&self, outcome: Result<(), Damaged>) {
        let _ = self.health.note(outcome);
    }

    /// The first unit, which stays in the list.
    #[inline]
    pub(crate) const fn first(&self) -> Link {
        self.first
    }

    /// Takes the first unit out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NonNull<u8>> {
        let unit = self.first?;
        // SAFETY: units in the list are free and begin with their link.
        self.first = unsafe { FreeBlock::take(unit, self.watch()) };
        Some(unit.cast())
    }

    /// Called when the list should be empty. If it is not, it leads in a circle, and this is
    /// noted as damage.
    pub(crate) fn end(&self) {
        self.watch().accepts(|_| self.first.is_none());
    }

    /// Puts a unit before all others.
    ///
    /// # Safety
    /// - `unit` is a unit that nothing uses, and is in no list.
    #[inline]
    pub(crate) unsafe fn push(&mut self, unit: NonNull<u8>) {
        // SAFETY: nothing uses the unit, which is in no list.
        self.first = Some(unsafe { FreeBlock::link(unit, self.first, self.key) });
    }

    /// Puts a chain before all others.
    #[inline]
    pub(crate) fn push_chain(&mut self, chain: Chain) {
        // SAFETY: the units of a chain are free and stay valid (`Chain::of`), and the chain
        // is given up.
        unsafe { FreeBlock::link(chain.last.cast(), self.first, self.key) };
        self.first = Some(chain.first);
    }

    /// Takes up to `most` units out, in their order; `None` if there are none.
    pub(crate) fn take(&mut self, most: usize) -> Option<Chain> {
        let first = self.first?;
        let (mut last, mut count) = (first, 1);
        while count < most {
            // SAFETY: units in the list are free and begin with their link.
            let Some(next) = (unsafe { FreeBlock::next(last, self.watch()) }) else { break };
            (last, count) = (next, count + 1);
        }
        // SAFETY: the last unit taken was in the list, so it is free and begins with its link.
        self.first = unsafe { FreeBlock::next(last, self.watch()) };
        Some(Chain { first, last, count, key: self.key })
    }

    /// Takes the first `count` units out, of which `last` is the last: one step, however many there are.
    ///
    /// # Safety
    /// - `last` is in the list.
    pub(crate) unsafe fn take_through(&mut self, last: NonNull<FreeBlock>, count: usize) -> Option<Chain> {
        let first = self.first?;
        // SAFETY: a unit of the list: free, so it begins with its link.
        self.first = unsafe { FreeBlock::next(last, self.watch()) };
        Some(Chain { first, last, count, key: self.key })
    }

    /// Moves the units behind `last`, up to `end`, before all others, in one step.
    ///
    /// # Safety
    /// - Both are in the list, and `end` comes later.
    pub(crate) unsafe fn move_to_front(&mut self, last: NonNull<FreeBlock>, end: NonNull<FreeBlock>) {
        // SAFETY: units of the list: free, so they begin with their links.
        let (next, behind) =
            unsafe { (FreeBlock::next(last, self.watch()), FreeBlock::next(end, self.watch())) };
        let Some(next) = next else { return };
        // SAFETY: a unit of the list, which nothing uses.
        unsafe { FreeBlock::link(last.cast(), behind, self.key) };
        // SAFETY: a unit of the list, too, and another one.
        unsafe { FreeBlock::link(end.cast(), self.first, self.key) };
        self.first = Some(next);
    }

    /// Takes the units at the front that lie below `limit`, in their order, at most `most`; `None` if there are none.
    pub(crate) fn take_below(&mut self, limit: NonNull<u8>, most: usize) -> Option<Chain> {
        let mut chain: Option<Chain> = None;
        while let Some(unit) = self.first.filter(|unit| unit.cast() < limit) {
            if !self.watch().accepts(|_| chain.as_ref().map_or(0, Chain::count) < most) {
                break;
            }
            self.pop();
            match &mut chain {
                // SAFETY: just taken out of the list.
                Some(chain) => unsafe { chain.append(unit.cast()) },
                // SAFETY: just taken out of the list.
                None => chain = Some(unsafe { Chain::of(unit.cast(), self.key) }),
            }
        }
        chain
    }

    /// Whether the first two units, of `unit` bytes, touch.
    pub(crate) fn begins_with_neighbours(&self, unit: usize) -> bool {
        let Some(first) = self.first else { return false };
        // SAFETY: units in the list are free and begin with their link.
        let next = unsafe { FreeBlock::next(first, self.watch()) };
        // SAFETY: a unit of the list.
        let run = unsafe { Block::new(first.cast(), unit) };
        next.is_some_and(|next| touching(run, next, unit).is_some())
    }

    /// Takes the first unit, of `unit` bytes, and those after it for as long as each touches the ones before it, up
    /// to `most` bytes.
    #[inline(always)]
    pub(crate) fn pop_run(&mut self, unit: usize, most: usize) -> Option<Block> {
        // SAFETY: a unit that was free, and is out of the list now.
        let run = unsafe { Block::new(self.pop()?, unit) };
        // Mostly none touches: the loop is kept out of the way.
        if self.first.is_none_or(|next| unit >= most || touching(run, next, unit).is_none()) {
            return Some(run);
        }
        Some(self.lengthen(run, unit, most))
    }

    /// Takes the first units as long as each, of `unit` bytes, touches `run` or those before it, up to `most` bytes in all.
    pub(crate) fn lengthen(&mut self, run: Block, unit: usize, most: usize) -> Block {
        let (list, run) = mem::replace(self, Self::of(self.key)).pop_touching(run, unit, most);
        *self = list;
        run
    }

    /// As [`List::lengthen`], on a list in registers.
    #[inline(never)]
    fn pop_touching(mut self, mut run: Block, unit: usize, most: usize) -> (Self, Block) {
        while let Some(next) = self.first.filter(|_| run.size() < most)
            && let Some(longer) = touching(run, next, unit)
        {
            self.pop();
            run = longer;
        }
        (self, run)
    }

    /// The number of units, at most `most`: it walks the list.
    pub(crate) fn count(&self, most: usize) -> usize {
        let (mut next, mut count) = (self.first, 0);
        while let Some(unit) = next
            && count < most
        {
            // SAFETY: units in the list are free and begin with their link.
            next = unsafe { FreeBlock::next(unit, self.watch()) };
            count += 1;
        }
        count
    }

    /// The last of the first `count` units: it walks the list.
    pub(crate) fn last(&self, count: usize) -> Link {
        let mut last = self.first?;
        for _ in 1..count {
            // SAFETY: units in the list are free and begin with their link.
            let Some(next) = (unsafe { FreeBlock::next(last, self.watch()) }) else { break };
            last = next;
        }
        Some(last)
    }
}

/// The block that a run and a unit make if they touch, whichever comes first.
#[inline(always)]
fn touching(run: Block, unit: NonNull<FreeBlock>, size: usize) -> Option<Block> {
    let is_below = unit.addr().get() + size == run.base().addr().get();
    let is_above = run.limit() == unit.cast();
    let base = if is_below { unit.cast() } else { run.base() };
    // SAFETY: touching units that are free; they lie in one extent or in several that the arena gave from the same range.
    (is_below || is_above).then(|| unsafe { Block::new(base, run.size() + size) })
}

#[cfg(all(test, feature = "hardening"))]
mod tests {
    use super::*;
    use tripoint_core::{Addr, AddrRange, PoolId};

    /// A list that is longer than was counted ends where it was counted to end.
    #[test]
    fn no_more_units_are_taken_below_a_limit_than_were_counted() {
        let mut words = [[0_usize; 4]; 4];
        let base = NonNull::from(&mut words).cast::<u8>();
        let range = AddrRange::with_size(Addr::of(base.as_ptr()), size_of_val(&words)).unwrap();
        let mut list = List::of(LinkKey::new(range, PoolId::new(7).unwrap()));
        for number in (0..4).rev() {
            // SAFETY: a unit of the array, which is four words, and in no list.
            unsafe { list.push(base.cast::<[usize; 4]>().add(number).cast()) };
        }
        // SAFETY: one past the array.
        let limit = unsafe { base.cast::<[usize; 4]>().add(4) }.cast();
        assert_eq!(list.take_below(limit, 3).map(|chain| chain.count()), Some(3));
        assert_eq!(list.ensure_sound(), Err(Damaged));
    }
}
