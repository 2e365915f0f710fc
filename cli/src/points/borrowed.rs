//! A value that is borrowed by what lies beside it.

use core::marker::PhantomData;
use core::ptr::NonNull;

/// A value on the heap. It is the last field of a structure whose other fields borrow it, so that it is dropped after them.
pub(super) struct Borrowed<'a, T> {
    /// From a box, which is freed when this is dropped.
    value: NonNull<T>,
    borrows: PhantomData<&'a T>,
}

impl<'a, T: 'a> Borrowed<'a, T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: NonNull::from(Box::leak(Box::new(value))), borrows: PhantomData }
    }

    /// The value.
    ///
    /// # Safety
    /// - Nothing uses the reference once this is dropped.
    pub(super) const unsafe fn get(&self) -> &'a T {
        // SAFETY: the box is freed only when this is dropped, after which the caller does not use the reference. Nothing has
        // an exclusive reference to the value before.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        // SAFETY: it came from a box in `new`, and is dropped once, here. No reference to it is used any more (`get`).
        drop(unsafe { Box::from_raw(self.value.as_ptr()) });
    }
}
