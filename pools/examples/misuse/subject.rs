//! A pool, or a cache before one, in which a fault is committed.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Arena, Check, CheckLevel, ManualPool, Result, Store};
use tripoint_pools::{Cache, DebugPool, MfsCache, Unit};

/// What a fault is committed in, whatever its type.
pub(crate) trait Subject {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>>;

    /// Frees an object, or what is none.
    fn free(&self, object: NonNull<u8>, layout: Layout);

    /// Whether a deep check finds nothing.
    fn is_whole(&self) -> bool;

    /// Whether it has reported a fault in another way than by refusing.
    fn has_reported(&self) -> bool;
}

/// A pool or a cache, and the functions that say how it is.
struct Examined<'s, S> {
    store: &'s S,
    is_whole: fn(&S) -> bool,
    has_reported: fn(&S) -> bool,
}

impl<S: Store> Subject for Examined<'_, S> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.store.alloc(layout)
    }

    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: for an orderly free, the object is of this store, with this layout, and is freed
        // once. A fault breaks one of these duties; its outcome is what is examined.
        unsafe { self.store.free(object, layout) };
    }

    fn is_whole(&self) -> bool {
        (self.is_whole)(self.store)
    }

    fn has_reported(&self) -> bool {
        (self.has_reported)(self.store)
    }
}

/// A pool as it is.
pub(crate) fn plain<P: ManualPool>(pool: &P) -> impl Subject {
    Examined { store: pool, is_whole: |pool| pool.check(CheckLevel::Deep).is_ok(), has_reported: |_| false }
}

/// A debug pool, which keeps reports.
pub(crate) fn watched<P: ManualPool>(pool: &DebugPool<P>) -> impl Subject {
    Examined {
        store: pool,
        is_whole: |pool| pool.check(CheckLevel::Deep).is_ok(),
        has_reported: |pool| pool.reports().count() != 0,
    }
}

/// A cache of units, and its pool.
pub(crate) fn unit_cache<A: Arena, U: Unit>(cache: &MfsCache<'_, A, U>) -> impl Subject {
    Examined { store: cache, is_whole: |cache| are_whole(cache, cache.pool()), has_reported: |_| false }
}

/// A cache by size classes, and its pool.
pub(crate) fn class_cache<P: ManualPool>(cache: &Cache<'_, P>) -> impl Subject {
    Examined { store: cache, is_whole: |cache| are_whole(cache, cache.pool()), has_reported: |_| false }
}

fn are_whole(cache: &impl Check, pool: &impl Check) -> bool {
    cache.check(CheckLevel::Deep).is_ok() && pool.check(CheckLevel::Deep).is_ok()
}
