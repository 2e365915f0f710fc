//! The ways by which objects of a pool are allocated and freed: the pool itself, caches, points and what else is in front
//! of it. Each frees what the others allocated.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_ap::AllocationPoint;
use tripoint_core::{Arena, Check, CheckLevel, Error, Magazine, ManualPool, Result, Store};
use tripoint_pools::{Cache, CacheClasses, Depot, Mfs, MfsCache, Returns, Unit};

/// One way to allocate and free, whatever its type.
pub(crate) trait Way {
    fn name(&self) -> &'static str;

    /// Allocates, if it can; `Error::Limit` if it only frees.
    fn alloc(&mut self, layout: Layout) -> Result<NonNull<u8>>;

    /// Frees an object, or what is none.
    fn free(&mut self, object: NonNull<u8>, layout: Layout);

    /// Whether it makes objects, and frees them, that are not those of `alloc` of a pool of variable size.
    fn is_point(&self) -> bool {
        false
    }

    /// Whether it takes memory for objects that it has not allocated yet. `tend(0)` returns it.
    fn takes_ahead(&self) -> bool {
        false
    }

    /// Returns what it keeps, or walks, reads and trims: whatever an orderly program may do between two objects.
    fn tend(&mut self, which: usize);
}

/// The layout by which a pool serves an object that caches may free too.
fn block(classes: Option<&CacheClasses>, layout: Layout) -> Layout {
    classes.and_then(|classes| classes.block(layout)).unwrap_or(layout)
}

/// A pool.
pub(crate) struct OfPool<'s, P> {
    pub(crate) pool: &'s P,
    pub(crate) classes: Option<CacheClasses>,
    pub(crate) trim: fn(&P),
}

impl<P: ManualPool> Way for OfPool<'_, P> {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn alloc(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        self.pool.alloc(block(self.classes.as_ref(), layout))
    }

    fn free(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: an object of the pool with this layout, which is freed once, unless this is the fault that is looked for.
        unsafe { self.pool.free(object, block(self.classes.as_ref(), layout)) };
    }

    fn tend(&mut self, which: usize) {
        match which % 4 {
            0 => (self.trim)(self.pool),
            1 => self.pool.walk_free(&mut |_| ()),
            2 => {
                let sizes = self.pool.sizes();
                assert!(sizes.free <= sizes.total && sizes.largest_free <= sizes.free, "{sizes:?}");
            }
            _ => _ = self.pool.check(CheckLevel::Deep),
        }
    }
}

/// Magazines of a pool.
pub(crate) struct Many<'s, P> {
    pub(crate) pool: &'s P,
    pub(crate) classes: Option<CacheClasses>,
    /// What was taken, with the layout of all, and not allocated yet.
    pub(crate) taken: Option<(Layout, Magazine)>,
}

impl<P: ManualPool> Way for Many<'_, P> {
    fn name(&self) -> &'static str {
        "many"
    }

    fn alloc(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        let layout = block(self.classes.as_ref(), layout);
        if self.taken.as_ref().is_none_or(|(of, taken)| *of != layout || taken.is_empty()) {
            self.tend(0);
            let mut magazine = Magazine::up_to(7);
            self.pool.alloc_many(layout, &mut magazine);
            self.taken = Some((layout, magazine));
        }
        self.taken.as_mut().and_then(|(_, taken)| taken.pop()).ok_or(Error::Limit)
    }

    fn free(&mut self, object: NonNull<u8>, layout: Layout) {
        let mut magazine = Magazine::up_to(1);
        let _ = magazine.push(object);
        // SAFETY: an object of the pool with this layout, which is freed once, unless this is the fault that is looked for.
        unsafe { self.pool.free_many(block(self.classes.as_ref(), layout), &mut magazine) };
    }

    fn takes_ahead(&self) -> bool {
        true
    }

    fn tend(&mut self, _which: usize) {
        if let Some((layout, mut taken)) = self.taken.take() {
            // SAFETY: objects of the pool with this layout, which were not handed on.
            unsafe { self.pool.free_many(layout, &mut taken) };
        }
    }
}

/// A cache or a depot before a pool.
pub(crate) struct OfStore<'s, S> {
    pub(crate) name: &'static str,
    pub(crate) store: &'s S,
    pub(crate) tend: fn(&S, usize),
}

impl<S: Store> Way for OfStore<'_, S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn alloc(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        self.store.alloc(layout)
    }

    fn free(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: an object of the pool with a layout that the store takes, which is freed once, unless this is the fault that is
        // looked for.
        unsafe { self.store.free(object, layout) };
    }

    fn tend(&mut self, which: usize) {
        (self.tend)(self.store, which);
    }
}

/// Tends a cache of units.
pub(crate) fn tend_units<A: Arena, U: Unit>(cache: &MfsCache<'_, A, U>, which: usize) {
    match which % 3 {
        0 => cache.flush(),
        1 => _ = cache.cached(),
        _ => _ = cache.check(CheckLevel::Deep),
    }
}

/// Tends a cache by size classes.
pub(crate) fn tend_cache<P: ManualPool>(cache: &Cache<'_, P>, which: usize) {
    match which % 3 {
        0 => cache.flush(),
        1 => cache.descriptor().trip(),
        _ => _ = cache.check(CheckLevel::Deep),
    }
}

/// Tends a depot.
pub(crate) fn tend_depot<P: ManualPool>(depot: &Depot<'_, P>, which: usize) {
    match which % 2 {
        0 => depot.flush(),
        _ => _ = depot.check(CheckLevel::Deep),
    }
}

/// An allocation point.
pub(crate) struct OfPoint<'p, P: ManualPool> {
    pub(crate) point: AllocationPoint<'p, P>,
    /// Whether what it allocates and frees is as from the pool: a unit.
    pub(crate) has_units: bool,
}

impl<P: ManualPool> Way for OfPoint<'_, P> {
    fn name(&self) -> &'static str {
        "point"
    }

    fn alloc(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        let reservation = self.point.reserve(layout)?;
        // SAFETY: of a manual pool, whose objects no reader expects to find in a form.
        unsafe { reservation.commit() }.map_err(|_| Error::Limit)
    }

    fn free(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: an object of the pool with this layout, which is freed once, unless this is the fault that is looked for.
        unsafe { self.point.free(object, layout) };
    }

    fn is_point(&self) -> bool {
        !self.has_units
    }

    fn takes_ahead(&self) -> bool {
        true
    }

    fn tend(&mut self, _which: usize) {
        self.point.empty();
    }
}

/// Returns.
pub(crate) struct OfReturns<'p, A: Arena, U: Unit>(pub(crate) Returns<'p, A, U>);

impl<A: Arena, U: Unit> Way for OfReturns<'_, A, U> {
    fn name(&self) -> &'static str {
        "returns"
    }

    fn alloc(&mut self, _layout: Layout) -> Result<NonNull<u8>> {
        Err(Error::Limit)
    }

    fn free(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: a unit of the pool, which is freed once, unless this is the fault that is looked for.
        unsafe { self.0.free(object, layout) };
    }

    fn tend(&mut self, _which: usize) {
        self.0.flush();
    }
}

/// Trims a pool of units.
pub(crate) fn trim<A: Arena, U: Unit>(pool: &Mfs<A, U>) {
    pool.trim();
}
