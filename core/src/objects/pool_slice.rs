//! Owning pointers to several objects in a row.

use core::alloc::Layout;
use core::mem::{self, MaybeUninit};
use core::ptr::NonNull;

use crate::objects::pool_box::{PoolBox, alloc_memory};
use crate::traits::store::Store;
use crate::values::error::{Error, Result};

/// Objects in a row that are made one by one. It drops those that were made.
struct Made<'m, T> {
    places: &'m mut [MaybeUninit<T>],
    count: usize,
}

impl<T> Drop for Made<'_, T> {
    fn drop(&mut self) {
        for place in self.places.iter_mut().take(self.count) {
            // SAFETY: the first `count` objects are initialised, and each is dropped once.
            unsafe { place.assume_init_drop() };
        }
    }
}

impl<'s, T, S: Store> PoolBox<'s, [T], S> {
    /// Makes `count` objects in a row, each from its index, in memory from `store`.
    ///
    /// ```
    /// use tripoint_core::{PoolBox, Result, Store};
    ///
    /// fn squares<S: Store>(count: usize, store: &S) -> Result<PoolBox<'_, [usize], S>> {
    ///     PoolBox::slice_in(count, |index| index * index, store)
    /// }
    /// ```
    ///
    /// If `make` panics, the objects made before are dropped and the memory is freed.
    ///
    /// # Errors
    /// - those of [`Store::alloc`]
    /// - [`Error::Parameter`] if the objects together would take more than `isize::MAX` bytes
    pub fn slice_in(count: usize, mut make: impl FnMut(usize) -> T, store: &'s S) -> Result<Self> {
        let mut memory = uninit_slice_in(count, store)?;
        let mut made = Made { places: &mut memory, count: 0 };
        while let Some(place) = made.places.get_mut(made.count) {
            place.write(make(made.count));
            made.count += 1;
        }
        mem::forget(made);
        let first = PoolBox::into_raw(memory).cast::<T>();
        // SAFETY: all `count` objects are initialised, and their owner was the box that gave them
        // up. Its memory came from the store with the layout of as many objects.
        Ok(unsafe { Self::from_raw_in(NonNull::slice_from_raw_parts(first, count), store) })
    }
}

/// Memory for `count` objects in a row, which are not initialised.
fn uninit_slice_in<T, S: Store>(count: usize, store: &S) -> Result<PoolBox<'_, [MaybeUninit<T>], S>> {
    let layout = Layout::array::<T>(count)
        .map_err(|_| Error::Parameter("the objects together would take more than isize::MAX bytes"))?;
    let first = alloc_memory::<MaybeUninit<T>, S>(store, layout)?;
    // SAFETY: objects that need not be initialised, known only here. If they have a size, their
    // memory came from the store with their own layout.
    Ok(unsafe { PoolBox::from_raw_in(NonNull::slice_from_raw_parts(first, count), store) })
}
