//! Manual fixed small: many objects of one size.
//!
//! Free units are a list through their first words; memory never used before is
//! a run that units are cut from (design/pool-mfs.md `.mfs`, `.req.constant`).
//! In front of the pool there may be a [cache](MfsCache) for each thread, and
//! [returns](Returns), by which other threads return units.
//!
//! | file | |
//! |---|---|
//! | `unit` | size and alignment of units |
//! | `unit_seals` | with the feature `hardening`, whether a unit is in use |
//! | `batched_list` | units that were freed before, in batches |
//! | `free_units` | that list, and the run never used |
//! | `waiting` | what a buffer keeps |
//! | `return_stack` | units that other threads freed |
//! | `supply` | where units come from |
//! | `trim` | extents that are returned |
//! | `class` | the protocols of pools |
//! | `magazine` | units packed in units |
//! | `cache` | one thread's free units |
//! | `returns` | one thread's way to free units of other threads |

use core::ptr::NonNull;

use tripoint_core::{
    Addr, Arena, Block, CheckError, Error, LockKind, Owned, PoolHeader, PoolLock, PoolOptions, Result,
    Shared, ensure,
};

use crate::blocks::{Chain, FreeBlock};
use crate::link::{Damaged, LinkKey, UNDAMAGED};
use crate::poison::poison;
use crate::seal::SEAL_SIZE;

mod batched_list;
mod cache;
mod class;
mod free_units;
mod magazine;
pub(crate) mod return_stack;
mod returns;
mod supply;
mod trim;
mod unit;
mod unit_seals;
mod waiting;

pub use cache::MfsCache;
pub use returns::Returns;
pub use unit::{Unit, UnitLayout, UnitOf};
pub use waiting::WaitingUnits;

use free_units::FreeUnits;
use return_stack::{BATCH, ReturnStack};
use unit_seals::UnitSeals;

const UNSERVED: Error = Error::Parameter("the layout is larger or more aligned than the pool's unit");

/// The name of the class.
const CLASS: &str = "MFS";

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

/// A pool of the class MFS, manual fixed small.
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
        let MfsOptions { extend_by, fill_size } = options;
        let passed = PoolOptions::new([unit.size(), unit.align(), extend_by, fill_size]);
        let header = PoolHeader::create_with(arena, CLASS, passed)?;
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

    /// Takes units back from a cache or a buffer.
    fn put_chain(&self, chain: Chain) {
        if let Ok(mut units) = self.units.lock() {
            units.push_chain(chain);
        }
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
    fn reach(&self, unit: NonNull<FreeBlock>) -> NonNull<FreeBlock> {
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
}
