//! One thread's free units, in front of the pool (design/pool-mfs.md `.cache`).

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::{
    Addr, Arena, Check, CheckError, CheckLevel, Describe, Error, LockKind, PoolBox, PoolClass, Result,
    Shared, Store, aver, ensure, line,
};

use super::magazine::{for_each_in_magazine, unpack, unpack_all};
use super::{Mfs, UNSERVED, Unit};
use crate::blocks::{FreeBlock, Link, List};
use crate::link::{Damaged, Health, LinkKey, UNDAMAGED, Watch};

/// One thread's free units of an [`Mfs`]. Allocating takes the unit freed last,
/// freeing puts one back, and neither takes a lock.
///
/// When it has none it takes those that other threads returned ([`Returns`]), or
/// else a batch from the pool. It keeps what is freed in it, without bound, until
/// [`MfsCache::flush`] or until it is dropped: freed units are out of reach for
/// other threads, and count as live for the pool ([`MfsCache::cached`] returns
/// how many bytes those are).
///
/// Units may be freed in any cache of the pool, and by the pool itself. A cache
/// that is forgotten (`mem::forget`) takes its units with it until the pool is
/// dropped.
///
/// A large structure that is torn down in random order, and built again of the same units, lies scattered, and takes longer to
/// build and to walk along. After [`MfsCache::flush`] and [`Mfs::trim`] it does not; nor does what lives in a
/// [`Cache`](crate::Cache) over a [`Depot::with_slabs`](crate::Depot::with_slabs) (design/pool-mfs.md `.mfs.aged`).
///
/// [`Returns`]: super::Returns
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_pools::{Mfs, MfsOptions, UnitOf};
///
/// let orders = Mfs::create(&arena, UnitOf::<[u64; 3]>::new(), MfsOptions::default())?;
/// let cache = orders.cache();
/// drop(cache.boxed([10_250, 7, 1])?); // stays in the cache
/// assert!(cache.cached() >= orders.unit_size());
/// cache.flush();
/// assert_eq!(cache.cached(), 0);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("thread cache", "magazine"))]
pub struct MfsCache<'pool, A: Arena, U: Unit, L: LockKind = Shared> {
    /// The unit freed last, if nothing was allocated since. It is in no list, and nothing but its
    /// seal says that it is free.
    last: Cell<Option<NonNull<u8>>>,
    /// The units freed before it.
    list: Cell<Link>,
    /// Units that were returned, in magazines still.
    magazines: Cell<Link>,
    key: LinkKey,
    health: Health,
    pool: &'pool Mfs<A, U, L>,
}

// SAFETY: the units it keeps are the cache's alone, and no thread's; the pool goes
// along as a shared reference, and is `Sync`.
unsafe impl<A: Arena, U: Unit, L: LockKind> Send for MfsCache<'_, A, U, L> where Mfs<A, U, L>: Sync {}

impl<A: Arena, U: Unit, L: LockKind> Mfs<A, U, L> {
    /// A cache, for one thread.
    pub const fn cache(&self) -> MfsCache<'_, A, U, L> {
        MfsCache::new(self)
    }
}

impl<'pool, A: Arena, U: Unit, L: LockKind> MfsCache<'pool, A, U, L> {
    const fn new(pool: &'pool Mfs<A, U, L>) -> Self {
        Self {
            last: Cell::new(None),
            list: Cell::new(None),
            magazines: Cell::new(None),
            key: pool.key(),
            health: Health::new(),
            pool,
        }
    }

    /// The pool it takes units from.
    pub const fn pool(&self) -> &'pool Mfs<A, U, L> {
        self.pool
    }

    /// Moves `value` into a unit that goes back to this cache when it is dropped.
    ///
    /// To have such boxes sampled or logged, put a store that does so in front of the cache, and use
    /// [`PoolBox::new_in`] on that.
    ///
    /// # Errors
    /// Those of [`Store::alloc`]; `value` is dropped.
    #[inline]
    pub fn boxed<T>(&self, value: T) -> Result<PoolBox<'_, T, Self>> {
        PoolBox::new_in(value, self)
    }

    /// Moves `value` into a unit that goes back to the pool when it is dropped, on
    /// whichever thread that happens: what to send to others.
    ///
    /// # Errors
    /// As [`MfsCache::boxed`].
    #[inline]
    pub fn pool_boxed<T>(&self, value: T) -> Result<PoolBox<'pool, T, Mfs<A, U, L>>> {
        let object = PoolBox::into_raw(self.boxed(value)?);
        // SAFETY: owned and initialised; its memory, if it has a size, is a unit of
        // the pool, which frees units wherever they were allocated.
        Ok(unsafe { PoolBox::from_raw_in(object, self.pool) })
    }

    /// Drops an object and keeps its unit. An object of another pool is dropped as
    /// usual.
    #[inline]
    pub fn free_box<T>(&self, object: PoolBox<'_, T, Mfs<A, U, L>>) {
        if ptr::eq(PoolBox::store(&object), self.pool) {
            // SAFETY: the box owned the object, whose memory is a unit of the pool.
            drop(unsafe { PoolBox::from_raw_in(PoolBox::into_raw(object), self) });
        }
    }

    /// The bytes in the units it keeps. It walks them: for diagnosis, not for hot
    /// paths.
    pub fn cached(&self) -> usize {
        let list = self.take_list();
        let count = list.count(self.pool.units_max());
        self.keep(&list);
        count * self.pool.unit_size()
    }

    /// Returns all units it keeps to the pool: one walk over them, one lock.
    pub fn flush(&self) {
        let mut list = self.take_list();
        if let Some(chain) = list.take(self.pool.units_max()) {
            self.pool.put_chain(chain);
        }
        list.end();
        self.keep(&list);
        let _ = self.ensure_sound();
    }

    /// Keeps the units of a list, and notes what was met in it.
    fn keep(&self, list: &List) {
        self.list.set(list.first());
        let _ = self.health.note(list.ensure_sound());
    }

    /// The key with which it reads its units.
    #[inline(always)]
    const fn watch(&self) -> Watch<'_> {
        Watch::new(self.key, &self.health)
    }

    /// Refuses once damage was met, and notifies the pool.
    #[inline(always)]
    fn ensure_sound(&self) -> Result<()> {
        self.health.ensure().map_err(|damaged| self.notify_pool(damaged))
    }

    /// Puts a unit in use that the cache kept.
    #[inline(always)]
    fn hand_out(&self, unit: NonNull<u8>) -> Result<NonNull<u8>> {
        // SAFETY: a unit of the pool that the cache kept: it was the one freed last, or in a list.
        self.health
            .note(unsafe { self.pool.seals().hand_out(unit) })
            .map_err(|damaged| self.notify_pool(damaged))
    }

    #[cold]
    fn notify_pool(&self, damaged: Damaged) -> Error {
        self.pool.note(damaged);
        damaged.into()
    }

    /// Takes all units it keeps.
    fn take_list(&self) -> List {
        // SAFETY: units in the cache's list are free and the cache's, which gives
        // them up here.
        let mut list = unsafe { List::from_link(self.list.take(), self.key) };
        if let Some(last) = self.last.take() {
            // SAFETY: given up by `free`, and in no list.
            unsafe { list.push(last) };
        }
        // SAFETY: what the cache keeps as magazines came off the pool's stack.
        let magazines = unsafe { List::from_link(self.magazines.take(), self.key) };
        // SAFETY: magazines of the pool's units, of this size, which are in no other list.
        unsafe { unpack_all(magazines, self.pool.unit_size(), self.pool.units_max(), &mut list) };
        list
    }

    /// Takes units and keeps all but one: those that were returned, a magazine at a time,
    /// or else a batch from the pool. There have to be none.
    #[cold]
    #[inline(never)]
    fn fill(&self) -> Result<NonNull<u8>> {
        // SAFETY: what the cache keeps as magazines came off the pool's stack.
        let mut magazines = unsafe { List::from_link(self.magazines.take(), self.key) };
        if magazines.first().is_none() {
            magazines = self.pool.returned().take();
        }
        let mut units = List::of(self.key);
        // SAFETY: the cache keeps, and the pool's stack holds, only magazines of the pool's units.
        unsafe { unpack(&mut magazines, self.pool.unit_size(), &mut units) };
        self.magazines.set(magazines.first());
        if units.first().is_none() {
            let batch = self.pool.take_batch()?;
            // Before the units that a hook freed here when it was notified of the
            // pool's growth.
            units = self.take_list();
            units.push_chain(batch);
        }
        let unit = units.pop();
        self.keep(&units);
        self.ensure_sound()?;
        aver!(unit.is_some(), "a cache got a batch without units");
        self.hand_out(unit.ok_or(Error::Limit)?)
    }

    /// Checks the units of a list, and those that `inside` shows in each.
    fn check_list(
        &self,
        first: Link,
        watch: Watch<'_>,
        inside: impl Fn(NonNull<FreeBlock>, &mut dyn FnMut(NonNull<u8>)),
    ) -> Result<(), CheckError> {
        let most = self.pool.units_max();
        let (mut next, mut count) = (first, 0);
        while let Some(unit) = next {
            count += 1;
            ensure("MfsCache", count <= most, "the list ends")?;
            self.pool.check_free_unit("MfsCache", Addr::of(unit.as_ptr()))?;
            let mut packed = Ok(());
            inside(unit, &mut |unit| {
                packed = packed.and(self.pool.check_free_unit("MfsCache", Addr::of(unit.as_ptr())));
            });
            packed?;
            // SAFETY: aligned memory of the pool, which is the cache's; any words
            // make a link.
            next = unsafe { FreeBlock::next(unit, watch) }.map(|next| self.pool.reach(next));
        }
        Ok(())
    }
}

// SAFETY: units are served by the pool's own rules, and leave the cache before they are returned.
// They are memory of the pool, which outlives the cache, wherever that is moved. A pointer that
// is freed is first replaced by one that reaches the same address. A cache is not `Sync`.
unsafe impl<A: Arena, U: Unit, L: LockKind> Store for MfsCache<'_, A, U, L> {
    /// Takes the unit freed last: a load, a test and a store, or twice that if the
    /// last call was an `alloc` too (design/pool-mfs.md `.cache.last`).
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        if self.pool.reserve_size(layout).is_none() {
            return Err(UNSERVED);
        }
        self.ensure_sound()?;
        if let Some(last) = self.last.get() {
            self.last.set(None);
            return self.hand_out(last);
        }
        let Some(unit) = self.list.get() else { return self.fill() };
        // SAFETY: units in the list are free and begin with their link.
        self.list.set(unsafe { FreeBlock::take(unit, self.watch()) });
        self.ensure_sound()?;
        self.hand_out(unit.cast())
    }

    /// Keeps a unit: a load, a test and a store, and two stores more if the last
    /// call was a `free` too. Units of all caches of the pool may be freed here,
    /// and those of the pool itself.
    #[inline(always)]
    unsafe fn free(&self, object: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller gives up an object of the pool.
        let Ok(object) = self.health.note(unsafe { self.pool.take_back(object) }) else { return };
        if let Some(before) = self.last.get() {
            // SAFETY: a unit that was given up, here, and is in no list.
            self.list.set(Some(unsafe { FreeBlock::link(before, self.list.get(), self.key) }));
        }
        self.last.set(Some(object));
    }

    /// As the pool does: units are of one size.
    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller's object is a unit of the pool, with this layout, and is not freed.
        unsafe { self.pool.resize(object, from, to) }
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Store::arena(self.pool)
    }
}

impl<A: Arena, U: Unit, L: LockKind> Drop for MfsCache<'_, A, U, L> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<A: Arena, U: Unit, L: LockKind> Check for MfsCache<'_, A, U, L> {
    /// A deep check walks the units, as that of a pool does. It reads with a health of its own,
    /// and changes nothing.
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.pool.header().check(CheckLevel::Cheap)?;
        if level >= CheckLevel::Shallow {
            ensure("MfsCache", self.health.ensure().is_ok(), UNDAMAGED)?;
        }
        if level >= CheckLevel::Deep {
            let health = Health::new();
            let watch = Watch::new(self.key, &health);
            if let Some(last) = self.last.get() {
                self.pool.check_free_unit("MfsCache", Addr::of(last.as_ptr()))?;
            }
            self.check_list(self.list.get(), watch, |_, _| {})?;
            self.check_list(self.magazines.get(), watch, |unit, visit| {
                // SAFETY: what the cache keeps as magazines came off the pool's stack.
                unsafe { for_each_in_magazine(unit, self.pool.unit_size(), watch, visit) };
            })?;
            ensure("MfsCache", health.ensure().is_ok(), UNDAMAGED)?;
        }
        Ok(())
    }
}

impl<A: Arena, U: Unit, L: LockKind> Describe for MfsCache<'_, A, U, L> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "cache", format_args!("of pool #{}", self.pool.header().id().get()))?;
        line(out, depth + 1, "cached", format_args!("{} bytes", self.cached()))
    }
}

impl<A: Arena, U: Unit, L: LockKind> fmt::Debug for MfsCache<'_, A, U, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MfsCache").field("last", &self.last.get()).finish_non_exhaustive()
    }
}
