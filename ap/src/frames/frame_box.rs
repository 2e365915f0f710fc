//! Owned objects in a frame. The box drops the object; the frame keeps its memory until it is
//! popped.

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

// SAFETY: a box owns its object, so sending the box sends the object, which may be sent.
unsafe impl<T: ?Sized + Send> Send for FrameBox<'_, T> {}
// SAFETY: through a shared box only `&T` is reached, which may be shared.
unsafe impl<T: ?Sized + Sync> Sync for FrameBox<'_, T> {}

impl<'frame, T> FrameBox<'frame, T> {
    /// Takes ownership of an object in a frame.
    ///
    /// # Safety
    /// - `object` is initialised, stays in place for `'frame`, and no other pointer reaches
    ///   it.
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

    /// Lends the object for as long as the frame lasts. It is not dropped.
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
        // SAFETY: the object is owned and initialised, and `self` is borrowed.
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for FrameBox<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is owned and initialised, and `self` is borrowed exclusively.
        unsafe { self.object.as_mut() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for FrameBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
