//! Manual fixed size: many objects of one size.
//!
//! Free units are a list through their first words; memory never used before is
//! a run that units are cut from (design/pool-mfs.md `.mfs`, `.req.constant`).
//! In front of the pool there may be a [cache](MfsCache) for each thread, and
//! [returns](Returns), by which other threads return units.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Addr, Arena, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, LockKind, Magazine, ManualPool,
    Owned, PoolClass, PoolHeader, PoolLock, PoolSizes, Result, Shared, Store, SymmetricFence, aver, ensure,
    line,
};

use crate::extend::{extend, extend_small};
use crate::link::{Damaged, Health, LinkKey, UNDAMAGED, Watch};
use crate::poison::poison;
use crate::resize::resize_in_place;
use crate::seal::SEAL_SIZE;

mod batched_list;
mod cache;
pub(crate) mod free_list;
mod free_units;
mod magazine;
pub(crate) mod return_stack;
mod returns;
mod trim;
mod unit;
mod unit_seals;
mod waiting;

pub use cache::MfsCache;
pub use returns::Returns;
pub use unit::{Unit, UnitLayout, UnitOf};
pub use waiting::WaitingUnits;

use free_list::{Chain, FreeList, FreeUnit};
use free_units::FreeUnits;
use magazine::unpack_all;
use return_stack::{BATCH, ReturnStack};
use unit_seals::UnitSeals;

const UNSERVED: Error = Error::Parameter("the layout is larger or more aligned than the pool's unit");

/// By how much a pool extends itself by default.
const EXTEND_BY: usize = 64 << 10;

/// Options for an [`Mfs`]. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct MfsOptions {
    /// By how much the pool extends itself, unless a unit needs more or the arena
    /// has only a unit's worth. What makes no whole unit at the end of an extent
    /// is not used. Default: 64 KiB.
    ///
    /// If this is the default or less, a pool of units of at most 128 bytes begins smaller in an arena that shares grains
    /// between pools, as a VM arena does: with room for eight units, in steps of 256 bytes, and then up to 1 KiB more.
    /// With the feature `hardening` it does not. Set more if the pool is known to grow: then it begins with as much.
    pub extend_by: usize,
    /// The most that one fill takes, in whole units, and at least one. Default:
    /// 64 KiB.
    pub fill_size: usize,
}

impl Default for MfsOptions {
    fn default() -> Self {
        Self { extend_by: EXTEND_BY, fill_size: 64 << 10 }
    }
}

impl MfsOptions {
    /// The bytes of whole units of this size that a fill takes at most.
    #[inline]
    fn whole_fill(&self, unit: usize) -> usize {
        let most = self.fill_size.max(unit);
        most - most % unit
    }

    /// How many units of this size are taken at a time when one is wanted: no more bytes than a fill.
    #[inline]
    fn batch(&self, unit: usize) -> usize {
        BATCH.min(self.whole_fill(unit) / unit)
    }
}

/// A pool of the class MFS, manual fixed size.
///
/// It serves every layout that fits its unit, and each takes a whole unit.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_core::{PoolBox, PoolClass};
/// use tripoint_pools::{Mfs, MfsOptions, UnitOf};
///
/// let orders = Mfs::create(&arena, UnitOf::<[u64; 3]>::new(), MfsOptions::default())?;
/// let order = PoolBox::new_in([10_250, 7, 1], &orders)?;
/// let free = orders.sizes().free;
/// drop(order);
/// assert_eq!(orders.sizes().free, free + orders.unit_size());
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("slab", "free list", "fixed size"))]
#[derive(Debug)]
pub struct Mfs<A: Arena, U: Unit, L: LockKind = Shared> {
    units: L::Lock<FreeUnits>,
    /// The thread that has it extends the pool. It is taken before `units`.
    growth: L::Lock<()>,
    returned: ReturnStack,
    unit: U,
    options: MfsOptions,
    key: LinkKey,
    header: PoolHeader<A>,
}

impl<A: Arena, U: Unit> Mfs<A, U> {
    /// Creates a pool of these units in the arena: [`UnitOf`] if the type is
    /// known, [`UnitLayout`] if only a layout is. It takes no memory until it is
    /// used.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for units aligned above the arena's grain
    /// - those of [`Arena::register`]
    pub fn create(arena: A, unit: U, options: MfsOptions) -> Result<Self> {
        Self::with_lock(arena, unit, options)
    }
}

impl<A: Arena, U: Unit> Mfs<A, U, Owned> {
    /// As `create`, for a pool that one thread owns: its calls take no lock, and while it is borrowed it stays in its
    /// thread. See [`Owned`].
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create_owned(arena: A, unit: U, options: MfsOptions) -> Result<Self> {
        Self::with_lock(arena, unit, options)
    }
}

impl<A: Arena, U: Unit, L: LockKind> Mfs<A, U, L> {
    fn with_lock(arena: A, unit: U, options: MfsOptions) -> Result<Self> {
        // Extents start at a grain, and so do units (design/pool-mfs.md `.req.align`).
        if unit.align() > arena.grain() {
            return Err(Error::Parameter("the unit is more aligned than the arena's grain"));
        }
        let header = PoolHeader::create(arena, Self::CLASS)?;
        let key = LinkKey::of(&header);
        let units = PoolLock::new(FreeUnits::new(key, unit.size(), options.batch(unit.size())));
        Ok(Self {
            units,
            growth: PoolLock::new(()),
            returned: ReturnStack::of(key),
            unit,
            options,
            key,
            header,
        })
    }

    /// The bytes of a unit.
    #[inline]
    pub fn unit_size(&self) -> usize {
        self.unit.size()
    }

    /// The key that encodes the links of its units.
    const fn key(&self) -> LinkKey {
        self.key
    }

    /// Notes the damage that a cache met (design/hardening.md `.health`).
    #[cold]
    fn note(&self, damaged: Damaged) {
        if let Ok(units) = self.units.lock() {
            units.list().note(Err(damaged));
        }
    }

    /// The units that other threads returned.
    const fn returned(&self) -> &ReturnStack {
        &self.returned
    }

    /// Calls `take` with the units, of which at least one is free.
    #[inline]
    fn with_free<T>(&self, take: impl FnOnce(&mut FreeUnits) -> Result<T>) -> Result<T> {
        let mut units = self.units.lock()?;
        if !units.is_empty() {
            return take(&mut units);
        }
        drop(units);
        self.with_supplied(false, take)
    }

    /// As [`Mfs::with_free`], for a fill: a pool that has only parts of grains gets tracts, before buffers are filled again
    /// and again with the few units that it has (design/pool-mfs.md `.mfs.small`).
    #[inline]
    fn with_room<T>(&self, take: impl FnOnce(&mut FreeUnits) -> Result<T>) -> Result<T> {
        let mut units = self.units.lock()?;
        if units.run().size() != 0 || !units.is_empty() && !self.should_outgrow_parts() {
            return take(&mut units);
        }
        drop(units);
        self.with_supplied(true, take)
    }

    /// Whether the pool has at most parts of grains, and the arena may give more.
    fn should_outgrow_parts(&self) -> bool {
        self.header.total() < self.header.arena().grain() && !self.header.arena().is_frozen()
    }

    /// As [`Mfs::with_free`], with one that another thread returned, or one of a new extent, which is of tracts for a
    /// fill. The units are not locked while the arena is asked (design/core.md `.lock.growth`).
    #[cold]
    #[inline(never)]
    fn with_supplied<T>(&self, for_fill: bool, take: impl FnOnce(&mut FreeUnits) -> Result<T>) -> Result<T> {
        let _growing = self.growth.lock()?;
        let mut units = self.units.lock()?;
        self.take_in(&mut units);
        units.list().ensure_sound()?;
        let is_cramped = for_fill && units.run().size() == 0 && self.should_outgrow_parts();
        if is_cramped || units.is_empty() {
            drop(units);
            let extent = self.new_extent(!for_fill);
            units = self.units.lock()?;
            match extent {
                Ok(extent) => units.extend(extent, self.unit.size()),
                Err(error) if units.is_empty() => return Err(error),
                Err(_) => {} // what it has serves
            }
        }
        take(&mut units)
    }

    /// Gets a part of a grain while the pool is small, unless it is for a fill, and otherwise tracts, which it makes a
    /// segment (design/pool-mfs.md `.mfs.small`).
    fn new_extent(&self, may_be_small: bool) -> Result<Block> {
        if may_be_small
            && self.options.extend_by <= EXTEND_BY
            && let Some(part) = extend_small(&self.header, self.unit.size(), self.unit.align())
        {
            return Ok(part);
        }
        let extent = extend(&self.header, self.extent_size(), self.options.extend_by)?;
        // SAFETY: tracts that were just allocated for this pool, and are in no segment.
        unsafe { self.header.arena().join_tracts(extent, self.header.id()) };
        Ok(extent)
    }

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

    /// The bytes that hold a unit wherever a grain begins. With the feature `hardening`,
    /// units lie at multiples of their size, so that an address tells whether a unit can
    /// begin there (design/hardening.md `.mfs`).
    fn extent_size(&self) -> usize {
        let unit = self.unit.size();
        let is_padded = LinkKey::CHECKS && !self.header.arena().grain().is_multiple_of(unit);
        if is_padded { unit.saturating_add(unit - self.unit.align()) } else { unit }
    }

    /// Whether a unit of the pool can be at the address that is freed. Always true without
    /// the feature `hardening`.
    #[inline]
    fn may_be_unit(&self, object: NonNull<u8>) -> bool {
        let base = object.addr().get();
        !LinkKey::CHECKS || base.is_multiple_of(self.unit.size()) && self.owns_unit(Addr::new(base))
    }

    /// How its units are sealed.
    #[inline(always)]
    fn seals(&self) -> UnitSeals {
        UnitSeals::of(self.key, self.unit.size())
    }

    /// Takes a unit out of use that is freed, by whatever way: reaches it by the arena's pointer, and poisons it.
    ///
    /// # Errors
    /// [`Damaged`] if it is no unit, or not in use.
    ///
    /// # Safety
    /// - The caller gives up an object of this pool.
    #[inline(always)]
    unsafe fn take_back(&self, object: NonNull<u8>) -> Result<NonNull<u8>, Damaged> {
        let object = self.header.reach(object.addr());
        if !self.may_be_unit(object) {
            return Err(Damaged);
        }
        // SAFETY: a unit of the pool lies there, whose address was checked; the caller gives it up.
        unsafe { self.seals().take_back(object) }?;
        // SAFETY: the caller gives up an object of this pool, which is a unit; the seal is behind these bytes.
        unsafe { poison(Block::new(object, self.unit.size() - SEAL_SIZE)) };
        Ok(object)
    }

    /// What was taken or given back; damage is noted, and none.
    #[inline(always)]
    fn noted<T>(&self, outcome: Result<T, Damaged>) -> Option<T> {
        outcome.map_err(|damaged| self.note(damaged)).ok()
    }

    /// An upper bound on the number of the pool's units.
    fn units_max(&self) -> usize {
        self.header.total() / self.unit.size()
    }

    /// Lists the units that were returned since, each once
    /// (design/pool-mfs.md `.returns.sizes`).
    fn take_in(&self, units: &mut FreeUnits) {
        let mut list = FreeList::of(self.key);
        // SAFETY: what is pushed on the stack is magazines of this pool's units.
        unsafe { unpack_all(self.returned.take(), self.unit.size(), self.units_max(), &mut list) };
        if let Some(chain) = list.take(self.units_max()) {
            units.push_chain(chain);
        }
        list.end();
        units.list().note(list.ensure_sound());
    }

    /// Takes up to a batch of units for a cache, but no more bytes than a fill.
    #[inline]
    fn take_batch(&self) -> Result<Chain> {
        let unit = self.unit.size();
        let batch = self.options.batch(unit);
        let (freed, run) = self.with_free(|units| {
            let freed = units.take(batch)?;
            let run = if freed.is_none() { units.cut((batch * unit).min(units.run().size())) } else { None };
            Ok((freed, run))
        })?;
        // SAFETY: whole units just cut from the run.
        let unused = || unsafe { Chain::of_run(run?, unit, self.key) };
        let chain = freed.or_else(unused);
        aver!(chain.is_some(), "the batch {run:?} has no unit of {unit} bytes");
        chain.ok_or(Error::Limit)
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
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    #[inline(always)]
    unsafe fn take_run(&self, buffer: &WaitingUnits) -> Option<Block> {
        // SAFETY: the caller is the buffer's owner.
        let run = self.noted(unsafe { buffer.take_run(self.key) })??;
        // SAFETY: units of the pool that waited in the buffer.
        self.noted(unsafe { self.seals().hand_out_run(run) })
    }

    /// Takes units back from a cache or a buffer.
    fn put_chain(&self, chain: Chain) {
        if let Ok(mut units) = self.units.lock() {
            units.push_chain(chain);
        }
    }

    /// Makes what a buffer's owner freed there the next fill, if it is `least` bytes or more; otherwise takes it back.
    ///
    /// # Safety
    /// - `buffer` is of this pool and full, and the caller is its owner.
    #[cold]
    unsafe fn reuse(&self, buffer: &WaitingUnits, least: usize) -> Option<Block> {
        if !buffer.reuse_freed(least) {
            // SAFETY: the caller is the buffer's owner.
            unsafe { self.flush_buffer(buffer) };
        }
        // SAFETY: the caller is the buffer's owner.
        unsafe { self.take_run(buffer) }
    }

    /// Takes the units that the owner of a buffer freed there.
    ///
    /// # Safety
    /// - `buffer` is of this pool, and the caller is its owner.
    #[cold]
    unsafe fn take_freed(&self, buffer: &WaitingUnits) -> Option<Chain> {
        // SAFETY: the caller is the buffer's owner.
        self.noted(unsafe { buffer.take_freed(self.key) }).flatten()
    }

    /// The bytes of a unit, if it holds what a buffer asks for: objects have this size together with their seals.
    #[inline]
    fn fill_unit(&self, layout: Layout) -> Option<usize> {
        let (size, align) = (self.unit.size(), self.unit.align());
        (layout.size() <= size && layout.align() <= align).then_some(size)
    }

    /// The bytes of whole units that a fill takes at most.
    fn fill_size(&self) -> usize {
        self.options.whole_fill(self.unit.size())
    }

    fn owns(&self, addr: Addr) -> bool {
        self.header.arena().pool_of(addr) == Some(self.header.id())
    }

    /// Whether a unit at this address would lie in the pool.
    fn owns_unit(&self, base: Addr) -> bool {
        self.owns(base) && base.checked_add(self.unit.size() - 1).is_some_and(|last| self.owns(last))
    }

    /// The unit that a link leads to, by a pointer of the arena: the provenance of a damaged
    /// link is unknown.
    fn reach(&self, unit: NonNull<FreeUnit>) -> NonNull<FreeUnit> {
        self.header.reach(unit.addr()).cast()
    }

    /// Checks that a free unit may be read.
    fn check_free_unit(&self, structure: &'static str, addr: Addr) -> Result<(), CheckError> {
        ensure(structure, addr.get().is_multiple_of(self.unit.align()), "listed units are aligned")?;
        ensure(structure, self.owns_unit(addr), "listed units lie in the pool")?;
        let unit = addr.get().try_into().map(|addr| self.header.reach(addr));
        // SAFETY: aligned memory of the pool, as large as a unit.
        let is_free = unit.is_ok_and(|unit| unsafe { self.seals().is_free(unit) });
        ensure(structure, is_free, UNDAMAGED)
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
            // SAFETY: as above; any words make a link.
            next = unsafe { FreeUnit::next(unit, watch) }.map(|next| self.reach(next));
            count += 1;
        }
        ensure(Self::CLASS, health.ensure().is_ok(), UNDAMAGED)?;
        ensure(Self::CLASS, count == units.list().count(), "the list has as many units as were counted")?;
        let run = units.run();
        ensure(Self::CLASS, run.size().is_multiple_of(self.unit.size()), "the run is whole units")?;
        ensure(Self::CLASS, run.size() == 0 || self.owns(run.range().base()), "the run lies in the pool")
    }
}

// SAFETY: blocks leave the list or the run before they are handed out, so no two overlap and the
// pool does not touch them; the units that wait in a buffer begin with their links, which only the buffer's
// owner reads. Extents are aligned to the grain and units no more than that, and
// units follow each other at multiples of their alignment. Each may be freed alone, by address.
// Size and alignment are properties of the unit and never change. Pools of one header are of one class.
unsafe impl<A: Arena, U: Unit, L: LockKind> PoolClass for Mfs<A, U, L> {
    const CLASS: &'static str = "MFS";
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = SEAL_SIZE;

    type Arena = A;
    type Barrier = SymmetricFence;
    type Buffer = WaitingUnits;

    fn new_buffer(&self) -> WaitingUnits {
        WaitingUnits::none(self.unit.size(), self.fill_size())
    }

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

    /// As `fill`. If few of the freed units touch, others wait in the buffer: a batch in all, taken under
    /// the same lock (design/pool-mfs.md `.mfs.waiting`). If the buffer's owner freed a batch, those units are the fill,
    /// without a lock (`.mfs.freed`).
    unsafe fn fill_buffer(&self, buffer: &WaitingUnits, layout: Layout) -> Result<Fill> {
        let unit = self.fill_unit(layout).ok_or(UNSERVED)?;
        let batch = self.options.batch(unit) * unit;
        if buffer.has_freed() {
            // SAFETY: the buffer is about to be filled, so it is full. The caller is its owner.
            if let Some(block) = unsafe { self.reuse(buffer, batch) } {
                return Ok(block.into());
            }
        }
        self.with_room(|units| {
            let block = self.take_fill(units, unit)?;
            let wanted = batch.saturating_sub(block.size()) / self.unit.size();
            // Damage that is met here is met again by the next fill.
            if wanted != 0
                && let Ok(Some(chain)) = units.take(wanted)
            {
                buffer.keep(&chain);
            }
            Ok(block.into())
        })
    }

    #[inline(always)]
    unsafe fn next_run(&self, buffer: &WaitingUnits, _layout: Layout) -> Option<Block> {
        // SAFETY: the caller is the buffer's owner.
        unsafe { self.take_run(buffer) }
    }

    unsafe fn empty_buffer(&self, buffer: &WaitingUnits, unused: Block) {
        // SAFETY: the caller is the buffer's owner.
        match unsafe { buffer.take_waiting(self.key) } {
            Ok(Some(chain)) => self.put_chain(chain),
            Ok(None) => {}
            Err(damaged) => self.note(damaged),
        }
        // SAFETY: the caller returns the end of a fill or of a run.
        unsafe { self.empty(unused) };
    }

    unsafe fn flush_buffer(&self, buffer: &WaitingUnits) {
        // SAFETY: the caller is the buffer's owner.
        if let Some(freed) = unsafe { self.take_freed(buffer) } {
            self.put_chain(freed);
        }
    }

    unsafe fn finish_buffer(&self, buffer: &WaitingUnits) -> bool {
        // SAFETY: the caller was the buffer's owner, and still has it to itself.
        unsafe { self.flush_buffer(buffer) };
        false
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
    const KEEPS_FREED: bool = true;

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

    #[inline(always)]
    unsafe fn alloc_in_buffer(&self, buffer: &WaitingUnits, layout: Layout) -> Option<NonNull<u8>> {
        self.reserve_size(layout)?;
        // SAFETY: the caller is the buffer's owner.
        let unit = self.noted(unsafe { buffer.pop(self.key) })??;
        // SAFETY: a unit of the pool that the buffer kept.
        self.noted(unsafe { self.seals().hand_out(unit) })
    }

    /// Keeps the unit in the buffer, up to a fill of them (design/pool-mfs.md `.mfs.freed`).
    #[inline]
    unsafe fn free_in_buffer(&self, buffer: &WaitingUnits, object: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller gives up an object of this pool.
        let Some(unit) = self.noted(unsafe { self.take_back(object) }) else { return };
        // SAFETY: a unit of the pool that was in use until now, so it is in no list. The caller is the buffer's owner.
        if unsafe { buffer.push_freed(unit, self.key) } {
            // SAFETY: the caller is the buffer's owner.
            unsafe { self.flush_buffer(buffer) };
        }
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
