//! What a buffer keeps: units of its fill that do not touch, and that wait until it comes to them, and units that its
//! owner freed.

use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicUsize, Ordering, prefetch};
use tripoint_core::{Block, BufferClass, OwnBuffer};

use crate::blocks::{Chain, FreeBlock, List, OwnList};
use crate::link::{Damaged, LinkKey};

/// The class of buffers of an [`Mfs`](crate::Mfs): the units of the last fill that wait for the buffer, and those that its
/// owner freed since (design/pool-mfs.md `.mfs.waiting`, `.mfs.freed`).
///
/// Only the owner changes it, so it is read and written without read-modify-writes.
#[derive(Debug)]
pub struct WaitingUnits {
    waiting: OwnUnits,
    freed: OwnUnits,
    unit: usize,
    /// How many bytes of freed units stay at most.
    freed_max: usize,
}

/// Units of a buffer, as a list that its owner alone reads and changes.
#[derive(Debug)]
struct OwnUnits {
    /// The first unit. Each begins with the link to the next, as far as `size` goes.
    first: OwnList,
    /// The bytes of all units.
    size: AtomicUsize,
}

impl OwnUnits {
    fn none() -> Self {
        Self { first: OwnList::none(), size: AtomicUsize::new(0) }
    }

    #[inline(always)]
    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn first(&self) -> Option<NonNull<FreeBlock>> {
        self.first.first()
    }

    #[inline(always)]
    fn set(&self, first: Option<NonNull<FreeBlock>>, size: usize) {
        self.first.set(first);
        self.size.store(size, Ordering::Relaxed);
    }

    /// The units, as a list that goes on behind them: what it takes out of them has to be counted.
    ///
    /// # Safety
    /// - The caller is the buffer's owner, and takes units only as long as there are some.
    #[inline(always)]
    unsafe fn list(&self, key: LinkKey) -> List {
        // SAFETY: the units are this buffer's, whose owner the caller is.
        unsafe { List::from_link(self.first(), key) }
    }

    /// Takes the first unit, of `unit` bytes, and those after it that touch; `None` if there is none.
    ///
    /// # Errors
    /// [`Damaged`] if a link was written over. The other units are lost then.
    ///
    /// # Safety
    /// - The caller is the buffer's owner.
    #[inline(always)]
    unsafe fn take_run(&self, unit: usize, key: LinkKey) -> Result<Option<Block>, Damaged> {
        let size = self.size();
        if size == 0 {
            return Ok(None);
        }
        // SAFETY: the caller is the owner; no more than `size` bytes are taken.
        let mut list = unsafe { self.list(key) };
        let run = list.pop_run(unit, size);
        let left = size - run.map_or(0, Block::size);
        let is_whole = list.watch().accepts(|_| left == 0 || list.first().is_some());
        self.set(list.first(), if is_whole { left } else { 0 });
        // Its link is read when this run is used up.
        prefetch(list.first().map_or(ptr::null(), |next| next.as_ptr().cast_const()));
        list.ensure_sound().map(|()| run)
    }

    /// Takes all units, of `unit` bytes.
    ///
    /// # Errors
    /// As [`OwnUnits::take_run`].
    ///
    /// # Safety
    /// - The caller is the buffer's owner.
    unsafe fn take_all(&self, unit: usize, key: LinkKey) -> Result<Option<Chain>, Damaged> {
        let count = self.size() / unit;
        if count == 0 {
            return Ok(None);
        }
        // SAFETY: the caller is the owner; no more than `count` units are taken.
        let mut list = unsafe { self.list(key) };
        let chain = list.take(count);
        self.size.store(0, Ordering::Relaxed);
        list.watch().accepts(|_| chain.as_ref().is_some_and(|chain| chain.count() == count));
        list.ensure_sound().map(|()| chain)
    }
}

impl WaitingUnits {
    /// No units yet, for units of `unit` bytes. At most `freed_max` bytes of freed ones stay.
    pub(crate) fn none(unit: usize, freed_max: usize) -> Self {
        Self { waiting: OwnUnits::none(), freed: OwnUnits::none(), unit, freed_max }
    }

    /// Keeps the units of a chain. No unit should wait yet.
    pub(super) fn keep<P>(own: OwnBuffer<'_, P, Self>, chain: &Chain) {
        let this = own.kept();
        this.waiting.set(Some(chain.first()), chain.count() * this.unit);
    }

    /// Takes the first unit that waits, and those after it that touch; `None` if no unit waits.
    ///
    /// # Errors
    /// [`Damaged`] if a link was written over. The units that waited are lost then.
    #[inline(always)]
    pub(super) fn take_run<P>(own: OwnBuffer<'_, P, Self>, key: LinkKey) -> Result<Option<Block>, Damaged> {
        // SAFETY: `own` is the owner's.
        unsafe { own.kept().waiting.take_run(own.kept().unit, key) }
    }

    /// Takes all units that wait.
    ///
    /// # Errors
    /// As [`WaitingUnits::take_run`].
    pub(super) fn take_waiting<P>(
        own: OwnBuffer<'_, P, Self>,
        key: LinkKey,
    ) -> Result<Option<Chain>, Damaged> {
        // SAFETY: `own` is the owner's.
        unsafe { own.kept().waiting.take_all(own.kept().unit, key) }
    }

    /// Keeps a unit that the owner frees. Returns whether there are now as many as may be: then they have to be
    /// [taken](Self::take_freed).
    ///
    /// # Safety
    /// - The caller gives up the unit, which is in no list.
    #[inline(always)]
    pub(super) unsafe fn push_freed<P>(own: OwnBuffer<'_, P, Self>, unit: NonNull<u8>, key: LinkKey) -> bool {
        let this = own.kept();
        let size = this.freed.size() + this.unit;
        // SAFETY: nothing uses the unit, which is in no list. `own` is the owner's.
        unsafe { this.freed.first.push(unit, key) };
        this.freed.size.store(size, Ordering::Relaxed);
        size > this.freed_max
    }

    /// Takes the unit that the owner freed last, or else the first that waits; `None` if there is neither.
    ///
    /// # Errors
    /// As [`WaitingUnits::take_run`].
    #[inline(always)]
    pub(super) fn pop<P>(own: OwnBuffer<'_, P, Self>, key: LinkKey) -> Result<Option<NonNull<u8>>, Damaged> {
        let this = own.kept();
        let units = if this.has_freed() { &this.freed } else { &this.waiting };
        let size = units.size();
        if size == 0 {
            return Ok(None);
        }
        // SAFETY: `own` is the owner's; one unit is taken.
        let mut list = unsafe { units.list(key) };
        let unit = list.pop();
        let left = size - this.unit;
        let is_whole = list.watch().accepts(|_| left == 0 || list.first().is_some());
        units.set(list.first(), if is_whole { left } else { 0 });
        list.ensure_sound().map(|()| unit)
    }

    /// Whether units that the owner freed are kept.
    #[inline]
    pub(super) fn has_freed(&self) -> bool {
        self.freed.size() != 0
    }

    /// Has all units that the owner freed wait, if they are `least` bytes or more, and returns whether they do. No unit
    /// should wait yet.
    pub(super) fn reuse_freed<P>(own: OwnBuffer<'_, P, Self>, least: usize) -> bool {
        let this = own.kept();
        let size = this.freed.size();
        let is_enough = size >= least;
        if is_enough {
            this.waiting.set(this.freed.first(), size);
            this.freed.set(None, 0);
        }
        is_enough
    }

    /// Takes all units that the owner freed.
    ///
    /// # Errors
    /// As [`WaitingUnits::take_run`].
    pub(super) fn take_freed<P>(own: OwnBuffer<'_, P, Self>, key: LinkKey) -> Result<Option<Chain>, Damaged> {
        // SAFETY: `own` is the owner's.
        unsafe { own.kept().freed.take_all(own.kept().unit, key) }
    }
}

impl BufferClass for WaitingUnits {
    /// All buffers of a pool have units of one size, and a buffer without an owner has no memory, and so no units.
    unsafe fn renew(&self, _fresh: Self) {}

    #[inline(always)]
    fn waiting(&self) -> usize {
        self.waiting.size()
    }
}
