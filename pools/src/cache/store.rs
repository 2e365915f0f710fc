//! A cache as a store, and what it says of itself.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::internal::Ordering;
use tripoint_core::{
    Arena, Check, CheckError, CheckLevel, Describe, ManualPool, Result, Store, ensure, line,
};

use super::Cache;
use super::block_list::ensure_list;
use crate::link::UNDAMAGED;

// SAFETY: a block of a class is at least as large and aligned as what the class serves, and leaves
// its list before it is returned. What no class serves comes from the pool. All of it is memory
// of the pool, which outlives the cache, wherever that is moved. A pointer that is freed is
// first replaced by one that reaches the same address (`PoolHeader::reach`). A cache is not `Sync`.
unsafe impl<P: ManualPool> Store for Cache<'_, P> {
    /// Allocates `layout`, aligned as it says. A layout that no class serves, because it is
    /// larger or more aligned, comes from the pool.
    ///
    /// # Errors
    /// Those of the pool, after the cache has returned to it all that it keeps and has
    /// asked again.
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let class = self.descriptor.classes().of(layout);
        let words = self.descriptor.words(class);
        let rest = words.count.load(Ordering::Relaxed).wrapping_sub(1);
        // Not empty, not tripped: one compare (design/cache.md `.compare`).
        if rest < words.limit.load(Ordering::Relaxed) {
            // SAFETY: the class keeps `rest + 1` blocks.
            return unsafe { self.pop(class, words, rest) };
        }
        self.alloc_slow(class, layout)
    }

    /// Frees a block. It may come from any cache over the same pool with equal classes; a block of a depot with
    /// [slabs](super::Depot::with_slabs), from any cache of that depot.
    #[inline(always)]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        let class = self.descriptor.classes().of(layout);
        let words = self.descriptor.words(class);
        // SAFETY: the caller gives up a block of this class.
        if let Some(object) = unsafe { self.keep(class, words, object) } {
            // SAFETY: the object came with this layout from a cache over this pool with equal classes, or of the same depot,
            // is freed once and used no more; `class` is the class of the layout.
            unsafe { self.free_slow(class, object, layout) };
        }
    }

    /// In place while the class stays the same. What no class serves is resized as the pool does.
    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        match self.descriptor.classes().have_same_block(from, to) {
            Some(same) => same.then(|| self.pool.header().reach(object.addr())),
            // SAFETY: no class serves the caller's object, so it came from the pool with this layout. It is not freed.
            None => unsafe { self.pool.resize(object, from, to) },
        }
    }

    #[inline]
    unsafe fn resize_room(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        match self.descriptor.classes().have_same_block(from, to) {
            Some(same) => same.then(|| self.pool.header().reach(object.addr())),
            // SAFETY: no class serves the caller's object, so it came from the pool with this layout.
            None => unsafe { self.pool.resize_room(object, from, to) },
        }
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        Store::arena(self.pool)
    }
}

impl<P: ManualPool> Check for Cache<'_, P> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.pool.header().check(CheckLevel::Cheap)?;
        if level >= CheckLevel::Shallow {
            ensure("Cache", self.health.ensure().is_ok(), UNDAMAGED)?;
        }
        for (index, class) in self.classes().iter().enumerate() {
            let words = self.descriptor.words(index);
            if level >= CheckLevel::Shallow {
                let (count, limit) =
                    (words.count.load(Ordering::Relaxed), words.limit.load(Ordering::Relaxed));
                let most = self.most(class, words);
                ensure("Cache", count <= most, "a class keeps no more than it may")?;
                ensure("Cache", limit == 0 || limit == most, "a class is armed or tripped")?;
            }
            if level >= CheckLevel::Deep {
                let (header, count) = (self.pool.header(), words.count.load(Ordering::Relaxed));
                let head = words.head.first();
                ensure_list("Cache", header, self.key, class, head, count)?;
            }
        }
        Ok(())
    }
}

impl<P: ManualPool> Describe for Cache<'_, P> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "cache", format_args!("of pool {} #{}", P::CLASS, self.pool.header().id().get()))?;
        line(out, depth + 1, "cached", format_args!("{} bytes", self.descriptor.cached()))?;
        line(out, depth + 1, "trips", format_args!("{} handled", self.observed.get()))?;
        for (index, class) in self.classes().iter().enumerate() {
            let count = self.descriptor.words(index).count.load(Ordering::Relaxed);
            let size = class.size;
            line(out, depth + 1, "class", format_args!("{size} bytes, {count} of {} blocks", class.count))?;
        }
        Ok(())
    }
}

impl<P: ManualPool> fmt::Debug for Cache<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("cached", &self.descriptor.cached()).finish_non_exhaustive()
    }
}
