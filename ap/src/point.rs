//! Allocation points: the fast path, and nothing cold (that is in `fill.rs`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Addr, BufferKind, Error, ManualPool, PoolBox, PoolClass, Result};

use crate::batch::Batch;
use crate::buffer::Buffer;
use crate::calc;
use crate::control::Control;
use crate::owner::Owner;
use crate::reservation::Reservation;
use crate::stops::Stops;
use crate::trip::Tripper;

/// A place to allocate in a pool: a buffer, and the right to use it.
///
/// One thread uses it at a time (it may move between threads); any number of
/// others may [trip](Tripper) it. Dropping it gives what it did not allocate
/// back to the pool.
///
/// `C` is what happens on [trips and stops](Control); `()` is nothing.
#[derive(Debug)]
pub struct AllocationPoint<'pool, P: PoolClass, C: Control = ()> {
    pub(crate) owner: Owner<'pool>,
    pub(crate) pool: &'pool P,
    pub(crate) stops: Stops,
    pub(crate) control: C,
    /// Why the last slow path failed: it returns only a pointer.
    pub(crate) failure: Error,
}

impl<'pool, P: PoolClass> AllocationPoint<'pool, P> {
    /// A reset allocation point in `pool`. Memory comes at the first reserve.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_control`](tripoint_core::Arena::alloc_control):
    /// the descriptor needs some, unless one is left from an earlier point.
    pub fn create(pool: &'pool P) -> Result<Self> {
        Self::create_with(pool, BufferKind::Mutator, ())
    }
}

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
        // pool never takes it back by itself, and nobody else has a pointer to
        // it, so it may be borrowed as long as the pool is.
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
        // SAFETY: `place` returned an initialised object that nobody else uses;
        // committed in this pool, it may be freed there with its own layout.
        Ok(unsafe { PoolBox::from_raw_in(object, self.pool) })
    }

    /// Allocates an object that `make` makes, and makes again as often as its
    /// commit fails. What became of the object afterwards is between the caller
    /// and the pool class.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`].
    #[inline(always)]
    pub fn alloc_with<T>(&mut self, mut make: impl FnMut() -> T) -> Result<NonNull<T>> {
        loop {
            let reservation = self.reserve(Layout::new::<T>())?;
            let object = reservation.as_ptr().cast::<T>();
            // SAFETY: the reservation is `T`'s size and alignment, and ours.
            unsafe { object.write(make()) };
            // SAFETY: the object was just initialised.
            if unsafe { reservation.commit() }.is_ok() {
                return Ok(object);
            }
            // SAFETY: the memory is still ours until the next reserve, and holds
            // the object that did not come to be.
            unsafe { object.drop_in_place() };
        }
    }

    /// Reserves memory for `layout`. Nothing is allocated until the token is
    /// committed; dropping it abandons the reservation.
    ///
    /// For a layout known at compile time this is one sum and one compare. A
    /// layout of size zero gets the smallest object of the pool.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for a layout the pool class does not serve
    /// - those of [`PoolClass::fill`] where the buffer is full and the pool can
    ///   give no more; the allocation point is then reset, and usable
    #[inline(always)]
    pub fn reserve(&mut self, layout: Layout) -> Result<Reservation<'_, 'pool, P, C>> {
        let size = self.pool.reserve_size(layout).unwrap_or(usize::MAX);
        let init = self.owner.init();
        let fits = calc::fits(init.addr(), size, self.owner.limit().addr())
            && calc::is_aligned(init.addr(), layout.align(), self.pool.min_align());
        let object = if fits {
            // SAFETY: a size that is not zero fitted below a limit, so the buffer
            // is attached and `init` not null.
            unsafe { NonNull::new_unchecked(init) }
        } else {
            match self.reserve_slow(layout) {
                Some(object) => object,
                None => return Err(self.failure),
            }
        };
        Ok(Reservation::new(self, object, size))
    }

    /// Reserves room for `count` objects in a row, to be filled one by one and
    /// committed together.
    ///
    /// # Errors
    /// - [`Error::Parameter`] where `count` objects pass `isize::MAX` bytes
    /// - those of [`AllocationPoint::reserve`]
    #[inline(always)]
    pub fn batch<T>(&mut self, count: usize) -> Result<Batch<'_, 'pool, T, P, C>> {
        Batch::reserve(self, count)
    }

    /// Who can take control of this allocation point, from anywhere.
    #[must_use]
    pub const fn tripper(&self) -> Tripper<'pool> {
        Tripper::new(self.owner.buffer)
    }

    /// The buffer, to observe or to flip.
    #[must_use]
    pub const fn buffer(&self) -> &'pool Buffer {
        self.owner.buffer
    }

    /// The pool.
    #[must_use]
    pub const fn pool(&self) -> &'pool P {
        self.pool
    }

    /// The control that trips and stops are told to.
    #[must_use]
    pub const fn control(&mut self) -> &mut C {
        &mut self.control
    }

    /// Whether the allocation point has no memory at present.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.owner.init().is_null()
    }

    /// Bytes left in the buffer, stops and trips apart.
    #[must_use]
    pub fn room(&self) -> usize {
        Addr::of(self.owner.pool_limit()).get() - Addr::of(self.owner.init()).get()
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
        let reservation = self.reserve(Layout::new::<T>())?;
        let object = reservation.as_ptr().cast::<T>();
        // SAFETY: the reservation is `T`'s size and alignment, and ours.
        unsafe { object.write(value) };
        // SAFETY: the object was just initialised.
        // A manual pool's commit never fails.
        let _stands = unsafe { reservation.commit() };
        Ok(object)
    }
}
