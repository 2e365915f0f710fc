//! Values: reserve, write and commit in one call.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Control, ManualPool, PoolBox, PoolClass, Result, aver};

use crate::point::AllocationPoint;
use crate::slow::objects::One;

impl<'pool, P: PoolClass, C: Control> AllocationPoint<'pool, P, C> {
    /// Allocates `value`, for as long as the pool lives. It is never dropped.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`]; `value` is dropped.
    #[inline(always)]
    pub fn alloc<T>(&mut self, value: T) -> Result<&'pool mut T>
    where
        P: ManualPool,
        T: 'pool,
    {
        let mut object = self.place(value)?;
        // SAFETY: `place` returned an initialised object of this pool. A manual
        // pool never takes it back by itself, and this is the only pointer to it, so it
        // may be borrowed as long as the pool is.
        Ok(unsafe { object.as_mut() })
    }

    /// Allocates `value` in a box, which drops it and frees its memory.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`]; `value` is dropped.
    #[inline(always)]
    pub fn boxed<T>(&mut self, value: T) -> Result<PoolBox<'pool, T, P>>
    where
        P: ManualPool,
    {
        let object = self.place(value)?;
        // SAFETY: `place` returned an initialised object, to which this is the only pointer.
        // It was committed in this pool, so it may be freed there with its own layout.
        Ok(unsafe { PoolBox::from_raw_in(object, self.pool()) })
    }

    /// Allocates an object that `make` makes. Calls `make` again each time the commit
    /// fails. What becomes of the object afterwards is between the caller and the pool
    /// class. In manual pools use [`AllocationPoint::alloc`].
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`].
    ///
    /// # Safety
    /// - `T` is what readers of the pool's objects expect to find: for a flippable
    ///   pool, a whole formatted object.
    /// - In a pool with frames, nothing uses the object after its frame is popped or the
    ///   allocation point is dropped.
    #[inline(always)]
    pub unsafe fn alloc_with<T>(&mut self, mut make: impl FnMut() -> T) -> Result<NonNull<T>> {
        loop {
            let reservation = self.reserve_for::<One<T>>(Layout::new::<T>())?;
            let object = reservation.as_ptr().cast::<T>();
            // SAFETY: the reserved memory is ours, and has the size and alignment of `T`.
            unsafe { object.write(make()) };
            // SAFETY: the object was just initialised. The caller promises that it is of a kind that the
            // pool's format knows, and that it is not used after its frame.
            if unsafe { reservation.commit() }.is_ok() {
                return Ok(object);
            }
            // SAFETY: the memory is still ours until the next reserve, and holds
            // the object whose commit failed.
            unsafe { object.drop_in_place() };
        }
    }

    /// Moves `value` into a new object. A `T` of size zero takes no memory.
    #[inline(always)]
    fn place<T>(&mut self, value: T) -> Result<NonNull<T>>
    where
        P: ManualPool,
    {
        if size_of::<T>() == 0 {
            let object = NonNull::dangling();
            // SAFETY: a dangling aligned pointer is valid for a write of no bytes.
            unsafe { object.write(value) };
            return Ok(object);
        }
        let layout = Layout::new::<T>();
        let fit = self.next_fit(layout);
        if !fit.fits
            && let Some(object) = self.alloc_freed(layout)
        {
            let object = object.cast::<T>();
            // SAFETY: the memory is ours, and has the size and alignment of `T`.
            unsafe { object.write(value) };
            return Ok(object);
        }
        let reservation = self.reserve_as_it_fits::<One<T>>(layout, fit)?;
        let object = reservation.as_ptr().cast::<T>();
        // SAFETY: the reserved memory is ours, and has the size and alignment of `T`.
        unsafe { object.write(value) };
        // SAFETY: the object was just initialised. A manual pool has no frames that give
        // memory, and no readers of its objects.
        let stands = unsafe { reservation.commit() };
        aver!(stands.is_ok(), "a commit at {object:p} failed in a manual pool");
        Ok(object)
    }
}
