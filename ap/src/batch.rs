//! The batch cursor: many objects of one type, one reserve, one commit.
//!
//! The cursor is a local value, so that filling goes through a register; this is
//! the only form that does not reload a descriptor for each object
//! (design/ap.md `.batch`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Control, Error, ManualPool, PoolBox, PoolClass, Result, aver};

use crate::point::AllocationPoint;
use crate::reservation::CommitFailed;
use crate::slow::objects::Many;

impl<'pool, P: PoolClass, C: Control> AllocationPoint<'pool, P, C> {
    /// Reserves room for `count` objects in a row, to be filled one by one and
    /// committed together.
    ///
    /// # Errors
    /// - [`Error::Parameter`] if `count` objects pass `isize::MAX` bytes, or if objects of a
    ///   flippable pool would not be whole units of its alignment
    /// - those of [`AllocationPoint::reserve`]
    #[inline(always)]
    pub fn batch<T>(&mut self, count: usize) -> Result<Batch<'_, 'pool, T, P, C>> {
        Batch::reserve(self, count)
    }
}

/// Room for a number of objects in a row, filled up to a cursor.
///
/// Committing allocates what was pushed and returns the rest to the
/// allocation point; dropping the batch abandons all, and drops what was pushed.
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{ManualPool, Result};
///
/// fn squares<'pool, P: ManualPool>(
///     point: &mut AllocationPoint<'pool, P>,
///     count: usize,
/// ) -> Result<&'pool mut [usize]> {
///     let mut batch = point.batch(count)?;
///     let mut next = 0;
///     while batch.push(next * next).is_ok() {
///         next += 1;
///     }
///     Ok(batch.commit())
/// }
/// ```
#[must_use = "dropping a batch abandons it"]
#[derive(Debug)]
pub struct Batch<'ap, 'pool, T, P: PoolClass, C: Control = ()> {
    point: &'ap mut AllocationPoint<'pool, P, C>,
    first: NonNull<T>,
    count: usize,
    capacity: usize,
}

impl<'ap, 'pool, T, P: PoolClass, C: Control> Batch<'ap, 'pool, T, P, C> {
    #[inline(always)]
    fn reserve(point: &'ap mut AllocationPoint<'pool, P, C>, capacity: usize) -> Result<Self> {
        let layout = Layout::array::<T>(capacity)
            .map_err(|_| Error::Parameter("the objects together would take more than isize::MAX bytes"))?;
        let first = if layout.size() == 0 {
            NonNull::dangling()
        } else {
            if P::FLIPPABLE && !size_of::<T>().is_multiple_of(point.pool().min_align()) {
                return Err(Error::Parameter(
                    "objects in a flippable pool fill whole units of its alignment",
                ));
            }
            point.reserve_for::<Many<T>>(layout)?.as_ptr().cast()
        };
        Ok(Self { point, first, count: 0, capacity })
    }

    /// The number of objects that there is room for in all.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of objects pushed so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing was pushed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Makes `value` the next object.
    ///
    /// # Errors
    /// `value`, if the batch is full.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.count == self.capacity {
            return Err(value);
        }
        // SAFETY: the memory from `first` on is ours and has room for `capacity` objects, and
        // `count` is below that.
        unsafe { self.first.add(self.count).write(value) };
        self.count += 1;
        Ok(())
    }

    /// The objects pushed so far.
    #[must_use]
    pub const fn as_slice(&self) -> &[T] {
        // SAFETY: `count` objects from `first` are initialised, aligned, and ours to lend
        // for as long as the batch is borrowed.
        unsafe { NonNull::slice_from_raw_parts(self.first, self.count).as_ref() }
    }

    /// Allocates what was pushed.
    ///
    /// # Errors
    /// [`CommitFailed`], in flippable pools only; the objects are dropped.
    ///
    /// # Safety
    /// - The objects are what readers of the pool's objects expect to find: for a
    ///   flippable pool, whole formatted objects.
    /// - In a pool with frames, nothing uses the objects after their frame is popped or the
    ///   allocation point is dropped.
    #[inline(always)]
    pub unsafe fn commit_raw(mut self) -> Result<NonNull<[T]>, CommitFailed> {
        let objects = NonNull::slice_from_raw_parts(self.first, self.count);
        let size = size_of::<T>() * self.count;
        if size != 0 {
            // This is a part of a layout that the pool served, so it serves this one too.
            let layout = Layout::from_size_align(size, align_of::<T>()).ok();
            let Some(size) = layout.and_then(|layout| self.point.pool().reserve_size(layout)) else {
                aver!(false, "of {} objects that were reserved {} are not served", self.capacity, self.count);
                return Err(CommitFailed);
            };
            let first = self.first.cast::<u8>();
            self.point.commit(first, first.as_ptr().wrapping_add(size))?;
        }
        // The objects are no longer the batch's to drop.
        self.count = 0;
        Ok(objects)
    }

    /// Allocates what was pushed, for as long as the pool lives.
    #[inline(always)]
    #[must_use]
    pub fn commit(self) -> &'pool mut [T]
    where
        P: ManualPool,
        T: 'pool,
    {
        // SAFETY: a manual pool has no readers of its objects, and takes none of them back.
        match unsafe { self.commit_raw() } {
            // SAFETY: `commit_raw` returned initialised objects that a manual
            // pool keeps as long as it lives, and this is the only pointer to them.
            Ok(mut objects) => unsafe { objects.as_mut() },
            Err(CommitFailed) => {
                aver!(false, "a commit of objects failed in a manual pool");
                &mut []
            }
        }
    }

    /// Allocates what was pushed in a box, which drops it and frees its memory.
    #[inline(always)]
    #[must_use]
    pub fn commit_boxed(self) -> PoolBox<'pool, [T], P>
    where
        P: ManualPool,
    {
        let pool = self.point.pool();
        // SAFETY: a manual pool has no readers of its objects, and takes none of them back.
        let objects = match unsafe { self.commit_raw() } {
            Ok(objects) => objects,
            Err(CommitFailed) => {
                aver!(false, "a commit of objects failed in a manual pool");
                NonNull::slice_from_raw_parts(NonNull::dangling(), 0)
            }
        };
        // SAFETY: the objects are initialised, and this is the only pointer to them. They
        // were committed in `pool`, so they may be freed there with the layout of the slice.
        unsafe { PoolBox::from_raw_in(objects, pool) }
    }
}

impl<T, P: PoolClass, C: Control> Drop for Batch<'_, '_, T, P, C> {
    #[inline]
    fn drop(&mut self) {
        let pushed = NonNull::slice_from_raw_parts(self.first, self.count);
        // SAFETY: `count` objects from `first` are initialised, and the batch still owns
        // them: committing sets `count` to zero.
        unsafe { pushed.drop_in_place() };
    }
}
