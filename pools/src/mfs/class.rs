//! The protocols of pools: filling buffers, allocating and freeing, and what a pool says of itself.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Addr, Arena, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, GivesWay, KeepsInBuffer,
    LockKind, Magazine, ManualPool, OwnBuffer, PoolClass, PoolHeader, PoolLock, PoolSizes, Result, Store,
    SymmetricFence, aver, ensure, line,
};

use super::free_units::FreeUnits;
use super::waiting::WaitingUnits;
use super::{CLASS, Mfs, UNSERVED, Unit};
use crate::blocks::{Chain, FreeBlock};
use crate::link::{Damaged, Health, UNDAMAGED, Watch};
use crate::poison::poison;
use crate::resize::resize_in_place;
use crate::seal::SEAL_SIZE;

impl<A: Arena, U: Unit, L: LockKind> Mfs<A, U, L> {
    /// Takes the unit freed last, or else one never used, and puts it in use.
    #[inline]
    fn take_unit(&self, units: &mut FreeUnits) -> Result<Option<NonNull<u8>>> {
        if let Some(unit) = units.pop()? {
            // SAFETY: a unit of the pool that was listed.
            let outcome = unsafe { self.seals().hand_out(unit) };
            units.list().note(outcome.map(|_| ()));
            return Ok(Some(outcome?));
        }
        // SAFETY: a unit of the pool, which nothing uses: it was in the run.
        Ok(units.cut(self.unit.size()).map(|unit| unsafe { self.seals().hand_out_new(unit) }.base()))
    }

    /// Takes a run of units never used, or else freed ones that touch.
    fn take_fill(&self, units: &mut FreeUnits, unit: usize) -> Result<Block> {
        let most = self.fill_size();
        units.list().ensure_sound()?;
        let size = units.run().size().min(most);
        let block = if size != 0 {
            // SAFETY: units of the run, which nothing uses.
            units.cut(size).map(|run| unsafe { self.seals().hand_out_new(run) })
        } else if let Some(run) = units.take_neighbours(unit, most)? {
            // SAFETY: units of the pool that were listed.
            let outcome = unsafe { self.seals().hand_out_run(run) };
            units.list().note(outcome.map(|_| ()));
            Some(outcome?)
        } else {
            None
        };
        aver!(
            block.is_some(),
            "a pool with {} listed units and {:?} unused has none",
            units.list().count(),
            units.run()
        );
        block.ok_or(Error::Limit)
    }

    /// Takes the next run of units that wait in a buffer; `None` if none do, and after damage, which is noted.
    #[inline(always)]
    fn take_run(own: OwnBuffer<'_, Self, WaitingUnits>) -> Option<Block> {
        let this = own.pool();
        let run = this.noted(WaitingUnits::take_run(own, this.key))??;
        // SAFETY: units of the pool that waited in the buffer.
        this.noted(unsafe { this.seals().hand_out_run(run) })
    }

    /// Makes what a buffer's owner freed there the next fill, if it is `least` bytes or more; otherwise takes it back. The
    /// caller has taken all that waited.
    #[cold]
    fn reuse(own: OwnBuffer<'_, Self, WaitingUnits>, least: usize) -> Option<Block> {
        if !WaitingUnits::reuse_freed(own, least) {
            Self::flush_buffer(own);
        }
        Self::take_run(own)
    }

    /// Takes the units that the owner of a buffer freed there.
    #[cold]
    fn take_freed(own: OwnBuffer<'_, Self, WaitingUnits>) -> Option<Chain> {
        own.pool().noted(WaitingUnits::take_freed(own, own.pool().key)).flatten()
    }

    /// The bytes of a unit, if it holds what a buffer asks for: objects have this size together with their seals.
    #[inline]
    fn fill_unit(&self, layout: Layout) -> Option<usize> {
        let (size, align) = (self.unit.size(), self.unit.align());
        (layout.size() <= size && layout.align() <= align).then_some(size)
    }

    fn check_units(&self, units: &FreeUnits) -> Result<(), CheckError> {
        // A check reads with a health of its own, and changes nothing.
        let health = Health::new();
        let (mut next, mut count, mut batches) = (units.list().first(), 0, units.list().batches());
        while let Some(unit) = next {
            ensure(
                Self::CLASS,
                count < units.list().count(),
                "the list ends after as many units as were counted",
            )?;
            self.check_free_unit(Self::CLASS, Addr::of(unit.as_ptr()))?;
            let watch = Watch::new(self.key, &health);
            // SAFETY: aligned memory of the pool, which the lock keeps from changing hands; any words make the end of a batch.
            let is_in_batch = unsafe { batches.step(unit) };
            ensure(Self::CLASS, is_in_batch, "batches of listed units end where their first units say")?;
            // SAFETY: aligned memory of the pool, which the lock keeps from changing hands; any words make a link.
            next = unsafe { FreeBlock::next(unit, watch) }.map(|next| self.reach(next));
            count += 1;
        }
        ensure(Self::CLASS, health.ensure().is_ok(), UNDAMAGED)?;
        ensure(Self::CLASS, count == units.list().count(), "the list has as many units as were counted")?;
        let run = units.run();
        ensure(Self::CLASS, run.size().is_multiple_of(self.unit.size()), "the run is whole units")?;
        ensure(Self::CLASS, run.size() == 0 || self.owns(run.range().base()), "the run lies in the pool")
    }
}

impl<A: Arena, U: Unit, L: LockKind> KeepsInBuffer for Mfs<A, U, L> {
    const KEEPS_FREED: bool = true;

    type Buffer = WaitingUnits;

    fn new_buffer(&self) -> WaitingUnits {
        WaitingUnits::none(self.unit.size(), self.fill_size())
    }

    /// As `fill`. If few of the freed units touch, others wait in the buffer: a batch in all, taken under
    /// the same lock (design/pool-mfs.md `.mfs.waiting`). If the buffer's owner freed a batch, those units are the fill,
    /// without a lock (`.mfs.freed`).
    #[inline(always)]
    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, WaitingUnits>, layout: Layout) -> Result<Option<Fill>> {
        let this = own.pool();
        let unit = this.fill_unit(layout).ok_or(UNSERVED)?;
        let batch = this.options.batch(unit) * unit;
        if own.kept().has_freed()
            && let Some(block) = Self::reuse(own, batch)
        {
            return Ok(Some(block.into()));
        }
        this.with_room(|units| {
            let block = this.take_fill(units, unit)?;
            let wanted = batch.saturating_sub(block.size()) / this.unit.size();
            // Damage that is met here is met again by the next fill.
            if wanted != 0
                && let Ok(Some(chain)) = units.take(wanted)
            {
                WaitingUnits::keep(own, &chain);
            }
            Ok(Some(block.into()))
        })
    }

    #[inline(always)]
    fn next_run(own: OwnBuffer<'_, Self, WaitingUnits>, _layout: Layout) -> Option<Block> {
        Self::take_run(own)
    }

    #[inline(always)]
    unsafe fn empty_buffer(own: OwnBuffer<'_, Self, WaitingUnits>, unused: Block) -> Option<Block> {
        match WaitingUnits::take_waiting(own, own.pool().key) {
            Ok(Some(chain)) => own.pool().put_chain(chain),
            Ok(None) => {}
            Err(damaged) => own.pool().note(damaged),
        }
        Some(unused)
    }

    fn flush_buffer(own: OwnBuffer<'_, Self, WaitingUnits>) {
        if let Some(freed) = Self::take_freed(own) {
            own.pool().put_chain(freed);
        }
    }

    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, WaitingUnits>) -> bool {
        Self::flush_buffer(own);
        false
    }

    /// Keeps the unit in the buffer, up to a fill of them (design/pool-mfs.md `.mfs.freed`).
    #[inline]
    unsafe fn free_in_buffer(own: OwnBuffer<'_, Self, WaitingUnits>, object: NonNull<u8>, _layout: Layout) {
        let this = own.pool();
        // SAFETY: the caller gives up an object of this pool.
        let Some(unit) = this.noted(unsafe { this.take_back(object) }) else { return };
        // SAFETY: a unit of the pool that was in use until now, so it is in no list.
        if unsafe { WaitingUnits::push_freed(own, unit, this.key) } {
            Self::flush_buffer(own);
        }
    }

    #[inline(always)]
    fn alloc_in_buffer(own: OwnBuffer<'_, Self, WaitingUnits>, layout: Layout) -> Option<NonNull<u8>> {
        let this = own.pool();
        this.reserve_size(layout)?;
        let unit = this.noted(WaitingUnits::pop(own, this.key))??;
        // SAFETY: a unit of the pool that the buffer kept.
        this.noted(unsafe { this.seals().hand_out(unit) })
    }
}

impl<A: Arena, U: Unit, L: LockKind> GivesWay for Mfs<A, U, L> {}

// SAFETY: blocks leave the list or the run before they are handed out, so no two overlap and the
// pool does not touch them; the units that wait in a buffer begin with their links, which only the buffer's
// owner reads. Extents are aligned to the grain and units no more than that, and
// units follow each other at multiples of their alignment. Each may be freed alone, by address.
// Size and alignment are properties of the unit and never change. Pools of one header are of one class.
unsafe impl<A: Arena, U: Unit, L: LockKind> PoolClass for Mfs<A, U, L> {
    const CLASS: &'static str = CLASS;
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = SEAL_SIZE;

    type Arena = A;
    type Barrier = SymmetricFence;

    #[inline(always)]
    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    #[inline(always)]
    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    #[inline]
    fn min_align(&self) -> usize {
        self.unit.align()
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        let size = self.fill_unit(layout)?;
        (layout.size() + SEAL_SIZE <= size).then_some(size)
    }

    /// Returns a run of units never used, or else freed ones that touch
    /// (design/pool-mfs.md `.mfs.order`, `.mfs.neighbours`, `.req.points`).
    fn fill(&self, layout: Layout) -> Result<Fill> {
        let unit = self.fill_unit(layout).ok_or(UNSERVED)?;
        self.with_room(|units| self.take_fill(units, unit)).map(Fill::from)
    }

    /// Takes back the whole units at the end. What lies in front of them is the rest of a
    /// unit of which a part is in use (design/pool-mfs.md `.mfs.empty`).
    unsafe fn empty(&self, unused: Block) {
        let cut = unused.size() % self.unit.size();
        let Some((_, units)) = unused.split_at(cut).filter(|(_, units)| units.size() != 0) else { return };
        // SAFETY: the caller gives up the block.
        unsafe { poison(units) };
        // SAFETY: whole units: fills are, and these are as many bytes up to their end.
        unsafe { self.seals().set_free(units) };
        if let Ok(mut free) = self.units.lock() {
            // SAFETY: the caller gives up the end of a fill. Fills are whole units, and
            // these are as many bytes up to their end, so they begin where a unit does.
            unsafe { free.put(units, self.unit.size()) };
        }
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let Ok(mut units) = self.units.lock() else { return };
        self.take_in(&mut units);
        units.walk(self.unit.size(), visit);
    }

    fn sizes(&self) -> PoolSizes {
        let unit = self.unit.size();
        let free = self.units.lock().map_or(0, |mut units| {
            self.take_in(&mut units);
            units.size(unit)
        });
        PoolSizes::of(&self.header, free, free.min(unit))
    }
}

// SAFETY: never flippable. Units of fills, and of runs, are freed as those of `alloc`, which are taken as fills are.
// Objects that take the same unit may become each other in place.
unsafe impl<A: Arena, U: Unit, L: LockKind> ManualPool for Mfs<A, U, L> {
    #[inline]
    unsafe fn set_aside(&self, object: NonNull<u8>, _layout: Layout) -> bool {
        let object = self.header.reach(object.addr());
        // SAFETY: a unit of the pool lies there, whose address was checked; if it is in use, it is the caller's.
        self.may_be_unit(object) && unsafe { self.seals().take_back(object) }.is_ok()
    }

    #[inline]
    unsafe fn put_in_use(&self, object: NonNull<u8>, _layout: Layout) -> bool {
        let object = self.header.reach(object.addr());
        // SAFETY: a unit of the pool lies there, whose address was checked; the caller set it aside.
        self.may_be_unit(object) && unsafe { self.seals().hand_out(object) }.is_ok()
    }

    fn note_damage(&self) {
        self.note(Damaged);
    }
}

// SAFETY: memory from `alloc` is a unit taken as fills are, which nothing else uses until it is
// freed. `free` replaces the pointer by one that reaches the same address. The units are behind
// a lock, so any thread that may call the pool may free. Objects are resized as
// `ManualPool` promises, and with a pointer that reaches all of them.
unsafe impl<A: Arena, U: Unit, L: LockKind> Store for Mfs<A, U, L> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.reserve_size(layout).ok_or(UNSERVED)?;
        let found = self.take_unit(&mut *self.units.lock()?)?;
        match found {
            Some(object) => Ok(object),
            None => self.with_supplied(false, |units| self.take_unit(units)?.ok_or(Error::Limit)),
        }
    }

    fn alloc_many(&self, layout: Layout, magazine: &mut Magazine) {
        if self.reserve_size(layout).is_none() {
            return;
        }
        let Ok(mut units) = self.units.lock() else { return };
        while magazine.room() != 0 {
            let Ok(Some(object)) = self.take_unit(&mut units) else { return };
            let _ = magazine.push(object);
        }
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller gives up an object of this pool.
        if let Some(unit) = self.noted(unsafe { self.take_back(object) })
            && let Ok(mut units) = self.units.lock()
        {
            // SAFETY: a unit of the pool that was in use until now, so it is in no list.
            unsafe { units.push(unit) };
        }
    }

    unsafe fn free_many(&self, _layout: Layout, magazine: &mut Magazine) {
        // SAFETY: the caller gives up objects of this pool.
        magazine.replace_each(|object| self.noted(unsafe { self.take_back(object) }));
        if let Ok(mut units) = self.units.lock() {
            for &unit in magazine.as_slice() {
                // SAFETY: a unit of the pool that was in use until now, so it is in no list.
                unsafe { units.push(unit) };
            }
        }
        magazine.clear();
    }

    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        resize_in_place(self, object, from, to)
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Some(self.header.arena())
    }
}

impl<A: Arena, U: Unit, L: LockKind> Check for Mfs<A, U, L> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)?;
        if level >= CheckLevel::Shallow {
            let Ok(units) = self.units.lock() else { return Ok(()) };
            ensure(Self::CLASS, units.list().ensure_sound().is_ok(), UNDAMAGED)?;
            let free = units.size(self.unit.size());
            ensure(Self::CLASS, free <= self.header.total(), "free memory is part of the pool's")?;
            if level >= CheckLevel::Deep {
                self.check_units(&units)?;
            }
        }
        Ok(())
    }
}

impl<A: Arena, U: Unit, L: LockKind> Describe for Mfs<A, U, L> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)?;
        let (listed, run) = {
            let Ok(units) = self.units.lock() else { return Ok(()) };
            (units.list().count(), units.run().size() / self.unit.size())
        };
        line(out, depth + 1, "unit", format_args!("{} bytes", self.unit.size()))?;
        line(out, depth + 1, "free units", format_args!("{listed} freed, {run} never used"))?;
        line(out, depth + 1, "extend by", format_args!("{} bytes", self.options.extend_by))?;
        line(out, depth + 1, "fill size", format_args!("{} bytes", self.fill_size()))
    }
}
