//! Manual fixed size: many objects of one size.
//!
//! Free units are a list through their first words; memory never used before is
//! a run that units are cut from (design/pool-mfs.md `.mfs`, `.req.constant`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::check::ensure;
use tripoint_core::describe::line;
use tripoint_core::primitive::Lock;
use tripoint_core::{
    Addr, Align, Arena, BasicBuffer, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, ManualPool,
    PoolClass, PoolHeader, PoolSizes, Result, SymmetricFence,
};

use crate::extend::extend;

mod unit;

pub use unit::{Unit, UnitLayout, UnitOf};

const UNSERVED: Error = Error::Parameter("the layout is larger or more aligned than the pool's unit");

/// What an [`Mfs`] may be told when it is created. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct MfsOptions {
    /// By how much the pool extends itself, unless a unit needs more or the arena
    /// has only a unit's worth. What makes no whole unit at the end of an extent
    /// is not used. Default: 64 KiB.
    pub extend_by: usize,
    /// The most that one fill takes, in whole units, and at least one. Default:
    /// 64 KiB.
    pub fill_size: usize,
}

impl Default for MfsOptions {
    fn default() -> Self {
        Self { extend_by: 64 << 10, fill_size: 64 << 10 }
    }
}

/// A pool of the class MFS, manual fixed size.
///
/// It serves every layout that fits its unit, and each takes a whole unit.
#[derive(Debug)]
pub struct Mfs<A: Arena, U: Unit> {
    units: Lock<FreeUnits>,
    unit: U,
    options: MfsOptions,
    header: PoolHeader<A>,
}

impl<A: Arena, U: Unit> Mfs<A, U> {
    /// Creates a pool of these units in the arena: [`UnitOf`] where the type is
    /// known, [`UnitLayout`] where only a layout is. It takes no memory until it is
    /// used.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for units aligned above the arena's grain
    /// - those of [`Arena::register`]
    pub fn create(arena: A, unit: U, options: MfsOptions) -> Result<Self> {
        // Extents start at a grain, and so do units (design/pool-mfs.md `.req.align`).
        if unit.align() > arena.grain() {
            return Err(Error::Parameter("the unit is more aligned than the arena's grain"));
        }
        let header = PoolHeader::create(arena, Self::CLASS)?;
        Ok(Self { units: Lock::new(FreeUnits::new()), unit, options, header })
    }

    /// The bytes of a unit.
    #[inline]
    pub fn unit_size(&self) -> usize {
        self.unit.size()
    }

    /// Makes a new extent the run, which has to be empty.
    ///
    /// The pool stays locked meanwhile: of two threads that need more memory, the
    /// second finds what the first got.
    #[cold]
    fn extend(&self, units: &mut FreeUnits) -> Result<()> {
        let extent = extend(&self.header, self.unit.size(), self.options.extend_by)?;
        let whole = extent.size() - extent.size() % self.unit.size();
        units.run = extent.split_at(whole).map_or(units.run, |(run, _)| run);
        Ok(())
    }

    /// The bytes of whole units that a fill takes at most.
    fn fill_size(&self) -> usize {
        let unit = self.unit.size();
        let most = self.options.fill_size.max(unit);
        most - most % unit
    }

    fn check_units(&self, units: &FreeUnits) -> Result<(), CheckError> {
        let owns = |addr| self.header.arena().pool_of(addr) == Some(self.header.id());
        let align = Align::new(self.unit.align()).unwrap_or(Align::WORD);
        let (mut next, mut count) = (units.list, 0);
        while let Some(unit) = next {
            let addr = Addr::of(unit.as_ptr());
            ensure(Self::CLASS, count < units.listed, "the list ends after as many units as were counted")?;
            ensure(Self::CLASS, addr.is_aligned(align), "listed units are aligned")?;
            ensure(Self::CLASS, owns(addr), "listed units lie in the pool")?;
            // SAFETY: aligned memory of the pool, which the lock keeps from changing
            // hands; any words make a link.
            next = unsafe { unit.read() }.next;
            count += 1;
        }
        ensure(Self::CLASS, count == units.listed, "the list has as many units as were counted")?;
        let run = units.run;
        ensure(Self::CLASS, run.size().is_multiple_of(self.unit.size()), "the run is whole units")?;
        ensure(Self::CLASS, run.size() == 0 || owns(run.range().base()), "the run lies in the pool")
    }
}

/// The first word of a free unit.
struct FreeUnit {
    next: Option<NonNull<FreeUnit>>,
}

/// The free units of a pool: those freed before, and those never used.
struct FreeUnits {
    list: Option<NonNull<FreeUnit>>,
    listed: usize,
    run: Block,
}

// SAFETY: free units belong to whoever holds this, and to no thread.
unsafe impl Send for FreeUnits {}

impl FreeUnits {
    const fn new() -> Self {
        // SAFETY: any pointer is valid for no bytes.
        let run = unsafe { Block::new(NonNull::dangling(), 0) };
        Self { list: None, listed: 0, run }
    }

    /// Bytes in free units of this size.
    fn size(&self, unit: usize) -> usize {
        self.listed * unit + self.run.size()
    }

    /// Takes the unit freed last.
    #[inline]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let unit = self.list?;
        // SAFETY: units in the list are free and start with their link (`push`).
        self.list = unsafe { unit.read() }.next;
        self.listed -= 1;
        Some(unit.cast())
    }

    /// Lists a unit.
    ///
    /// # Safety
    /// - `unit` is a unit of the pool that nobody uses, and is not listed.
    #[inline]
    unsafe fn push(&mut self, unit: NonNull<u8>) {
        let unit = unit.cast::<FreeUnit>();
        // SAFETY: a free unit has room for a word and is aligned for it.
        unsafe { unit.write(FreeUnit { next: self.list }) };
        self.list = Some(unit);
        self.listed += 1;
    }

    /// Cuts the first bytes off the run, if it has as many.
    #[inline]
    fn cut(&mut self, size: usize) -> Option<Block> {
        let (units, run) = self.run.split_at(size)?;
        self.run = run;
        Some(units)
    }

    /// Puts units back: before the run they were cut from, in place of an empty
    /// run, or else in the list, so that they come out in address order.
    ///
    /// # Safety
    /// - `units` is whole units of `unit` bytes of the pool that nobody uses.
    unsafe fn put(&mut self, units: Block, unit: usize) {
        if self.run.size() == 0 {
            self.run = units;
        } else if units.limit() == self.run.base() {
            // SAFETY: the two touch, and lie in one extent or in two that the arena
            // gave from the same range.
            self.run = unsafe { Block::new(units.base(), units.size() + self.run.size()) };
        } else {
            for offset in (0..units.size()).step_by(unit).rev() {
                // SAFETY: the offset is within the units, which nobody uses.
                unsafe { self.push(units.base().add(offset)) };
            }
        }
    }
}

// SAFETY: blocks given out leave the list or the run, so no two overlap and the
// pool does not touch them; extents are aligned to the grain and units no more
// than that, and units follow each other at multiples of their alignment, which
// with their size is a property of the unit and never changes.
unsafe impl<A: Arena, U: Unit> PoolClass for Mfs<A, U> {
    const CLASS: &'static str = "MFS";
    const FLIPPABLE: bool = false;

    type Arena = A;
    type Barrier = SymmetricFence;
    type Buffer = BasicBuffer;

    fn new_buffer(&self) -> BasicBuffer {
        BasicBuffer
    }

    fn header(&self) -> &PoolHeader<A> {
        &self.header
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    #[inline]
    fn min_align(&self) -> usize {
        self.unit.align()
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        let (size, align) = (self.unit.size(), self.unit.align());
        (layout.size() <= size && layout.align() <= align).then_some(size)
    }

    /// Gives a run of units never used, or else one that was freed
    /// (design/pool-mfs.md `.mfs.order`, `.req.points`).
    fn fill(&self, layout: Layout) -> Result<Fill> {
        let unit = self.reserve_size(layout).ok_or(UNSERVED)?;
        let mut units = self.units.lock();
        if units.run.size() == 0 {
            if let Some(freed) = units.pop() {
                // SAFETY: a unit out of the list: free, and as large as a unit.
                return Ok(unsafe { Block::new(freed, unit) }.into());
            }
            self.extend(&mut units)?;
        }
        let size = units.run.size().min(self.fill_size());
        units.cut(size).map(Fill::from).ok_or(Error::Limit)
    }

    unsafe fn empty(&self, unused: Block) {
        if unused.size() != 0 {
            // SAFETY: the caller gives up the end of a fill; allocations in it took
            // whole units, so whole units are left.
            unsafe { self.units.lock().put(unused, self.unit.size()) };
        }
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let units = self.units.lock();
        let mut next = units.list;
        while let Some(unit) = next {
            // SAFETY: units in the list are free, as large as the unit says, and
            // the lock keeps them so.
            visit(unsafe { Block::new(unit.cast(), self.unit.size()) });
            // SAFETY: as above; a free unit starts with its link.
            next = unsafe { unit.read() }.next;
        }
        if units.run.size() != 0 {
            visit(units.run);
        }
    }

    fn sizes(&self) -> PoolSizes {
        let unit = self.unit.size();
        let units = self.units.lock();
        let free = units.size(unit);
        PoolSizes {
            total: self.header.total(),
            free,
            largest_free: free.min(unit),
            high_water: self.header.high_water(),
        }
    }
}

// SAFETY: never flippable; memory from `alloc` is a unit taken as fills are, and
// whatever buffer a unit was allocated in, it may be listed by itself.
unsafe impl<A: Arena, U: Unit> ManualPool for Mfs<A, U> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let unit = self.reserve_size(layout).ok_or(UNSERVED)?;
        let mut units = self.units.lock();
        if let Some(freed) = units.pop() {
            return Ok(freed);
        }
        if units.run.size() == 0 {
            self.extend(&mut units)?;
        }
        units.cut(unit).map(Block::base).ok_or(Error::Limit)
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller gives up an object of this pool, which is a unit.
        unsafe { self.units.lock().push(object) };
    }
}

impl<A: Arena, U: Unit> Check for Mfs<A, U> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)?;
        if level >= CheckLevel::Shallow {
            let units = self.units.lock();
            let free = units.size(self.unit.size());
            ensure(Self::CLASS, free <= self.header.total(), "free memory is part of the pool's")?;
            if level >= CheckLevel::Deep {
                self.check_units(&units)?;
            }
        }
        Ok(())
    }
}

impl<A: Arena, U: Unit> Describe for Mfs<A, U> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)?;
        let (listed, run) = {
            let units = self.units.lock();
            (units.listed, units.run.size() / self.unit.size())
        };
        line(out, depth + 1, "unit", format_args!("{} bytes", self.unit.size()))?;
        line(out, depth + 1, "free units", format_args!("{listed} freed, {run} never used"))?;
        line(out, depth + 1, "extend by", format_args!("{} bytes", self.options.extend_by))?;
        line(out, depth + 1, "fill size", format_args!("{} bytes", self.fill_size()))
    }
}
