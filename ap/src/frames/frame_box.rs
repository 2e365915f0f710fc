//! Owned objects in a frame: they are dropped, and their memory goes with the frame.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// An object in a frame that is dropped like any other value.
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{FramePool, Result};
///
/// fn joined<P: FramePool>(point: &mut AllocationPoint<'_, P>) -> Result<usize> {
///     point.scope(|frame| {
///         let mut names = frame.boxed(vec!["parser", "book"])?; // the vector is dropped
///         names.push("router");
///         Ok(names.join(", ").len())
///     })
/// }
/// ```
pub struct FrameBox<'frame, T: ?Sized> {
    object: NonNull<T>,
    owns: PhantomData<(&'frame mut T, T)>,
}

// SAFETY: a box owns its object as a `Box` does.
unsafe impl<T: ?Sized + Send> Send for FrameBox<'_, T> {}
// SAFETY: a shared box gives out `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for FrameBox<'_, T> {}

impl<'frame, T> FrameBox<'frame, T> {
    /// Takes ownership of an object in a frame.
    ///
    /// # Safety
    /// - `object` is initialised, stays in place for as long as `'frame`, and is reached by
    ///   no other pointer.
    #[inline(always)]
    pub(crate) unsafe fn new(object: NonNull<T>) -> Self {
        Self { object, owns: PhantomData }
    }

    /// Moves the object out.
    #[must_use]
    pub fn into_inner(this: Self) -> T {
        let this = ManuallyDrop::new(this);
        // SAFETY: the object is owned and initialised, and is not used again.
        unsafe { this.object.read() }
    }

    /// Gives up dropping the object.
    #[must_use]
    pub fn leak(this: Self) -> &'frame mut T {
        let mut this = ManuallyDrop::new(this);
        // SAFETY: the object was owned, is initialised, and stays until the frame is
        // popped.
        unsafe { this.object.as_mut() }
    }
}

impl<T: ?Sized> Drop for FrameBox<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the object is owned, initialised, and dropped once, here.
        unsafe { self.object.drop_in_place() };
    }
}

impl<T: ?Sized> Deref for FrameBox<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the object is owned and initialised.
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for FrameBox<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is owned and initialised, and `self` is exclusive.
        unsafe { self.object.as_mut() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for FrameBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
