//! Pools of tripoint as contenders.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use tripoint::{
    ArenaVm, Cache, CacheClasses, CacheDescriptor, Depot, ManualPool, Mfs, MfsCache, MfsOptions, Result,
    Store, Tlsf, UnitLayout,
};

use super::memory::{Memory, Stored};
use super::worker::{Threads, Worker};

/// A pool that all threads share, behind its lock.
#[derive(Debug)]
pub(super) struct Shared<P>(pub(super) P);

impl<P: ManualPool + Sync> Threads for Shared<P> {
    fn on_thread(&self, worker: &mut Worker<'_>) {
        worker.run(&Stored(&self.0));
    }
}

/// A pool with a cache for each thread, and perhaps a depot that they share.
#[derive(Debug)]
pub(super) struct Cached<'p, P: ManualPool> {
    pool: &'p P,
    classes: CacheClasses,
    depot: Option<Depot<'p, P>>,
    /// Of the threads that have ended.
    fills: AtomicU64,
}

impl<'p, P: ManualPool> Cached<'p, P> {
    pub(super) fn new(pool: &'p P, classes: CacheClasses) -> Self {
        Self { pool, classes, depot: None, fills: AtomicU64::new(0) }
    }

    /// With a depot that keeps at most `bound` bytes, and slabs below it, as a program that has the pool for all.
    pub(super) fn with_depot(pool: &'p P, classes: CacheClasses, bound: usize) -> Self {
        Self { depot: Some(Depot::with_slabs(pool, classes, bound)), ..Self::new(pool, classes) }
    }
}

impl<P: ManualPool + Sync> Threads for Cached<'_, P> {
    fn on_thread(&self, worker: &mut Worker<'_>) {
        let descriptor = CacheDescriptor::new(self.classes);
        let cache = match &self.depot {
            Some(depot) => Cache::with_depot(depot, &descriptor),
            None => Cache::create(self.pool, &descriptor),
        };
        match cache {
            Ok(cache) => {
                let counted = CountedCache { cache, fills: Cell::new(0) };
                worker.run(&counted);
                self.fills.fetch_add(counted.fills.get(), Ordering::Relaxed);
            }
            // Only a descriptor in use is refused, and this one is new.
            Err(_) => worker.run(&Stored(self.pool)),
        }
    }

    fn fills(&self) -> Option<u64> {
        Some(self.fills.load(Ordering::Relaxed))
    }
}

/// A cache, and how often it had to ask its depot or its pool for memory.
struct CountedCache<'c, P: ManualPool> {
    cache: Cache<'c, P>,
    fills: Cell<u64>,
}

// SAFETY: a block comes from the cache, whose promises are those of `Memory`.
unsafe impl<P: ManualPool> Memory for CountedCache<'_, P> {
    #[inline]
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        let Some(block) = self.cache.alloc_cached(layout) else {
            self.fills.set(self.fills.get() + 1);
            return Stored(&self.cache).alloc(layout, zeroed);
        };
        if zeroed {
            // SAFETY: the block has that many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        Some(block)
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the block came from this cache with this layout, and is used no more.
        unsafe { Stored(&self.cache).free(block, layout) };
    }

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the block came from this cache with the layout `from`. Of both, only what is returned is used.
        unsafe { Stored(&self.cache).resize(block, from, to) }
    }
}

/// A pool of one size for each size class, with caches, and one pool for all that is larger.
#[derive(Debug)]
pub(super) struct Fixed<'a> {
    classes: CacheClasses,
    units: Vec<Mfs<&'a ArenaVm, UnitLayout>>,
    large: Tlsf<&'a ArenaVm>,
}

impl<'a> Fixed<'a> {
    /// The largest unit, in bytes.
    pub(super) const LARGEST: usize = 1024;

    pub(super) fn create(arena: &'a ArenaVm) -> Result<Self> {
        let classes = CacheClasses::geometric(Self::LARGEST, 1)?;
        let unit = |size| UnitLayout::new(Layout::from_size_align(size, 16).unwrap_or(Layout::new::<u128>()));
        let sizes = classes.as_slice().iter();
        let units = sizes.map(|class| Mfs::create(arena, unit(class.size)?, MfsOptions::default()));
        Ok(Self {
            classes,
            units: units.collect::<Result<_>>()?,
            large: Tlsf::create(arena, Default::default())?,
        })
    }

    /// Which pool has objects of this layout; none if that is the one for large ones.
    #[inline]
    fn class(&self, layout: Layout) -> Option<usize> {
        let size = self.classes.block(layout)?.size();
        let classes = self.classes.as_slice();
        (layout.align() <= 16).then(|| classes.partition_point(|class| class.size < size))
    }
}

/// The caches of one thread.
struct FixedThread<'p, 'a> {
    pools: &'p Fixed<'a>,
    caches: Vec<MfsCache<'p, &'a ArenaVm, UnitLayout>>,
}

// SAFETY: a block comes from the store that its layout selects, and returns to a store over the same pool; the
// promises of stores are those of `Memory`.
unsafe impl Memory for FixedThread<'_, '_> {
    #[inline]
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        match self.pools.class(layout) {
            Some(class) => Stored(&self.caches[class]).alloc(layout, zeroed),
            None => Stored(&self.pools.large).alloc(layout, zeroed),
        }
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        match self.pools.class(layout) {
            // SAFETY: the caller's duties are the same; the layout selects the pool that the block came from.
            Some(class) => unsafe { self.caches[class].free(block, layout) },
            // SAFETY: as for a unit, the layout selects the pool that the block came from.
            None => unsafe { self.pools.large.free(block, layout) },
        }
    }

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        match (self.pools.class(from), self.pools.class(to)) {
            // SAFETY: the layouts select the pool that the block came from; the caller's duties are the same.
            (Some(old), Some(new)) if old == new => unsafe {
                Stored(&self.caches[old]).resize(block, from, to)
            },
            // SAFETY: the layouts select the pool that the block came from; the caller's duties are the same.
            (None, None) => unsafe { Stored(&self.pools.large).resize(block, from, to) },
            _ => {
                let moved = self.alloc(to, false)?;
                // SAFETY: both blocks have that many bytes, and the new one overlaps no other.
                unsafe { block.copy_to_nonoverlapping(moved, from.size().min(to.size())) };
                // SAFETY: the caller uses only the new block from now on.
                unsafe { self.free(block, from) };
                Some(moved)
            }
        }
    }
}

impl Threads for Fixed<'_> {
    fn on_thread(&self, worker: &mut Worker<'_>) {
        let caches = self.units.iter().map(Mfs::cache).collect();
        worker.run(&FixedThread { pools: self, caches });
    }
}
