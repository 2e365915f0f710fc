//! An owning pointer to one object in a store.

use core::alloc::Layout;
use core::any::type_name;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::primitive::defer::Defer;
use crate::traits::store::Store;
use crate::values::error::Result;

/// A `Box` whose memory comes from a manual pool, or from a cache over one. Dropping it drops
/// the object and frees its memory there.
///
/// The store outlives it: the borrow says so. A box of a pool that is `Sync` may be sent to another
/// thread and dropped there. A box of a cache, or of an [`Owned`](crate::Owned) pool, stays on the
/// thread that has it.
///
/// ```
/// use tripoint_core::{PoolBox, Result, Store};
///
/// fn next_price<S: Store>(store: &S, price: u64) -> Result<u64> {
///     let mut price = PoolBox::new_in(price, store)?;
///     *price += 1;
///     Ok(PoolBox::into_inner(price))
/// }
/// ```
///
/// What a box owns may refer to the same store, as the nodes of a list do:
///
/// ```
/// # use tripoint_core::{PoolBox, Result, Store};
/// struct Order<'s, S: Store> {
///     quantity: u64,
///     next: Option<PoolBox<'s, Order<'s, S>, S>>,
/// }
///
/// fn two<S: Store>(store: &S) -> Result<PoolBox<'_, Order<'_, S>, S>> {
///     let last = PoolBox::new_in(Order { quantity: 7, next: None }, store)?;
///     PoolBox::new_in(Order { quantity: 3, next: Some(last) }, store)
/// }
/// ```
#[doc(alias("Box"))]
pub struct PoolBox<'s, T: ?Sized, S: Store> {
    object: NonNull<T>,
    store: &'s S,
    owns: PhantomData<T>,
}

// SAFETY: a `PoolBox` owns its object as a `Box` does, so it may be sent if the object may be
// sent. The store goes along as a shared reference, which may be sent if the store is `Sync`;
// such a store lets any thread free (`Store`).
unsafe impl<T: ?Sized + Send, S: Store + Sync> Send for PoolBox<'_, T, S> {}
// SAFETY: a shared `PoolBox` lends `&T` and `&S` and nothing else, and both may be shared.
unsafe impl<T: ?Sized + Sync, S: Store + Sync> Sync for PoolBox<'_, T, S> {}

impl<'s, T, S: Store> PoolBox<'s, T, S> {
    /// Moves `value` into memory from `store`. A `T` of size zero takes none.
    ///
    /// # Errors
    /// Those of [`Store::alloc`]; `value` is dropped.
    #[inline]
    pub fn new_in(value: T, store: &'s S) -> Result<Self> {
        let object = alloc_memory::<T, S>(store, Layout::new::<T>())?;
        // SAFETY: the memory has the size and alignment of a `T`, and nothing else uses it.
        unsafe { object.write(value) };
        // SAFETY: the object is initialised and known only here. If it has a size, its memory
        // came from the store with its own layout.
        Ok(unsafe { Self::from_raw_in(object, store) })
    }

    /// Moves the object out and frees its memory.
    #[inline]
    #[must_use]
    pub fn into_inner(this: Self) -> T {
        let store = this.store;
        let object = Self::into_raw(this);
        // SAFETY: the object was owned and is initialised; it is not used again.
        let value = unsafe { object.read() };
        // SAFETY: the store takes the memory with the layout of a `T` (`from_raw_in`). It was
        // owned, so it was not freed before; the object has moved out of it.
        unsafe { free_memory(store, object.cast(), Layout::new::<T>()) };
        value
    }
}

impl<'s, T: ?Sized, S: Store> PoolBox<'s, T, S> {
    /// Takes ownership of an object.
    ///
    /// Together with [`PoolBox::into_raw`] this makes a box of a trait object:
    ///
    /// ```
    /// use core::fmt::Display;
    /// use core::ptr::NonNull;
    /// use tripoint_core::{PoolBox, Result, Store};
    ///
    /// fn label<S: Store>(number: u64, store: &S) -> Result<PoolBox<'_, dyn Display, S>> {
    ///     let number: NonNull<u64> = PoolBox::into_raw(PoolBox::new_in(number, store)?);
    ///     let object: NonNull<dyn Display> = number;
    ///     // SAFETY: the object was owned by a box of this store; its layout is unchanged.
    ///     Ok(unsafe { PoolBox::from_raw_in(object, store) })
    /// }
    /// ```
    ///
    /// # Safety
    /// - `object` is initialised, and nothing else uses it or frees it.
    /// - Its memory may be passed to [`Store::free`] of `store` with the object's own layout;
    ///   an object of size zero needs no memory.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw_in(object: NonNull<T>, store: &'s S) -> Self {
        Self { object, store, owns: PhantomData }
    }

    /// Gives up ownership, without dropping the object or freeing its memory.
    #[inline]
    #[must_use]
    pub fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).object
    }

    /// Gives up freeing: the object lives as long as the store, and is never dropped.
    #[inline]
    #[must_use]
    pub fn leak(this: Self) -> &'s mut T
    where
        T: 's,
    {
        let mut object = Self::into_raw(this);
        // SAFETY: the object was owned and is initialised. Its memory stays valid while the store
        // is borrowed, because there is no owner left to free it.
        unsafe { object.as_mut() }
    }

    /// The store that the object returns its memory to.
    #[inline]
    #[must_use]
    pub const fn store(this: &Self) -> &'s S {
        this.store
    }
}

/// Allocates memory of `layout` for a `T`, or for several in a row; none if they have no size.
#[inline(always)]
pub(crate) fn alloc_memory<T, S: Store>(store: &S, layout: Layout) -> Result<NonNull<T>> {
    if layout.size() == 0 {
        return Ok(NonNull::dangling());
    }
    store.alloc_named(layout, type_name::<T>()).map(NonNull::cast)
}

/// Frees the memory of an object of `layout`, unless it has none.
///
/// # Safety
/// - If the layout has a size: those of [`Store::free`].
#[inline(always)]
unsafe fn free_memory<S: Store>(store: &S, object: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: the layout has a size, so the caller says that the store takes the object with
        // this layout, that it was not freed before, and that nothing uses it any more.
        unsafe { store.free(object, layout) };
    }
}

impl<T: ?Sized, S: Store> Drop for PoolBox<'_, T, S> {
    #[inline]
    fn drop(&mut self) {
        let (store, object, layout) = (self.store, self.object.cast(), Layout::for_value(&**self));
        // SAFETY: the store takes the memory with the object's own layout (`from_raw_in`). This runs
        // once, after the object was dropped below or while that unwinds; nothing uses it then.
        let _freed = Defer::new(|| unsafe { free_memory(store, object, layout) });
        // SAFETY: the object is owned and initialised, and is dropped only here.
        unsafe { self.object.drop_in_place() };
    }
}

impl<T: ?Sized, S: Store> Deref for PoolBox<'_, T, S> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object is owned and initialised (`from_raw_in`).
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized, S: Store> DerefMut for PoolBox<'_, T, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is owned and initialised (`from_raw_in`), and `self` is exclusive.
        unsafe { self.object.as_mut() }
    }
}

impl<T: ?Sized + fmt::Debug, S: Store> fmt::Debug for PoolBox<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display, S: Store> fmt::Display for PoolBox<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
