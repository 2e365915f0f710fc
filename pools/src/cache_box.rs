//! Owning pointers to objects that a cache allocated and takes back.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use tripoint_core::Result;

/// One thread's front to a pool: it allocates and frees without a lock, from
/// memory it took before.
///
/// # Safety
/// - Memory from [`ObjectCache::alloc`] is valid for reads and writes of
///   `layout.size()` bytes, aligned to `layout.align()`, and nobody else's until
///   it is freed.
/// - It stays so while the cache is borrowed, also when the cache moves after.
/// - [`ObjectCache::free`] relies on the address of an object, not on the provenance of
///   the pointer.
pub unsafe trait ObjectCache {
    /// Allocates `layout`, aligned as it says. The memory is not initialised.
    ///
    /// # Errors
    /// Those of [`ManualPool::alloc`](tripoint_core::ManualPool::alloc) of the pool.
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>>;

    /// Takes an object's memory.
    ///
    /// # Safety
    /// - `object` came from [`ObjectCache::alloc`] of this cache, or of one that says its
    ///   objects may be freed here, with this `layout`. Only the address matters, as in
    ///   [`ManualPool::free`](tripoint_core::ManualPool::free).
    /// - It is freed once, and nothing uses it any more.
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout);
}

/// A `Box` whose memory comes from a cache, and goes back there when it is
/// dropped. It stays on the thread that has the cache.
pub struct CacheBox<'cache, T, C: ObjectCache> {
    object: NonNull<T>,
    cache: &'cache C,
    owns: PhantomData<T>,
}

impl<'cache, T, C: ObjectCache> CacheBox<'cache, T, C> {
    /// Moves `value` into memory from `cache`. A `T` of size zero takes none.
    ///
    /// # Errors
    /// Those of [`ObjectCache::alloc`]; `value` is dropped.
    #[inline]
    pub fn new_in(value: T, cache: &'cache C) -> Result<Self> {
        let layout = Layout::new::<T>();
        let object = if layout.size() == 0 { NonNull::dangling() } else { cache.alloc(layout)?.cast::<T>() };
        // SAFETY: fresh memory of `T`'s layout, or dangling and aligned for a `T`
        // without size.
        unsafe { object.write(value) };
        // SAFETY: initialised above; its memory is the cache's, or none.
        Ok(unsafe { Self::from_raw_in(object, cache) })
    }

    /// Takes ownership of an object.
    ///
    /// # Safety
    /// - `object` is initialised, and nobody else uses it or frees it.
    /// - Its memory may be given to [`ObjectCache::free`] of `cache` with the
    ///   layout of a `T`; an object of size zero needs no memory.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw_in(object: NonNull<T>, cache: &'cache C) -> Self {
        Self { object, cache, owns: PhantomData }
    }

    /// Gives ownership up without dropping or freeing.
    #[inline]
    #[must_use]
    pub fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).object
    }

    /// Moves the object out and frees its memory.
    #[inline]
    #[must_use]
    pub fn into_inner(this: Self) -> T {
        let cache = this.cache;
        let object = Self::into_raw(this);
        // SAFETY: the object was owned and initialised, and is not used again.
        let value = unsafe { object.read() };
        // SAFETY: as `from_raw_in` was promised; nothing live is left in it.
        unsafe { free_memory(cache, object) };
        value
    }
}

/// Frees the memory of an object, unless it has none.
///
/// # Safety
/// As [`ObjectCache::free`], for types that have a size.
#[inline(always)]
unsafe fn free_memory<T, C: ObjectCache>(cache: &C, object: NonNull<T>) {
    let layout = Layout::new::<T>();
    if layout.size() != 0 {
        // SAFETY: the caller's duties are `free`'s.
        unsafe { cache.free(object.cast(), layout) };
    }
}

/// Does something when it is dropped, also when that is by unwinding.
pub(crate) struct Defer<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Defer<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<T, C: ObjectCache> Drop for CacheBox<'_, T, C> {
    #[inline]
    fn drop(&mut self) {
        let Self { object, cache, .. } = *self;
        // SAFETY: the object is owned and is dropped below, whether or not that
        // unwinds; its memory is freed once, here.
        let _freed = Defer(|| unsafe { free_memory(cache, object) });
        // SAFETY: owned, initialised, and dropped once, here.
        unsafe { object.drop_in_place() };
    }
}

impl<T, C: ObjectCache> Deref for CacheBox<'_, T, C> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object is owned and initialised (`from_raw_in`).
        unsafe { self.object.as_ref() }
    }
}

impl<T, C: ObjectCache> DerefMut for CacheBox<'_, T, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is owned and initialised, and `self` is exclusive.
        unsafe { self.object.as_mut() }
    }
}

impl<T: fmt::Debug, C: ObjectCache> fmt::Debug for CacheBox<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, C: ObjectCache> fmt::Display for CacheBox<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
