//! Allocation points: the fast path, and nothing cold (that is in `fill.rs`).

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;

use tripoint_core::{BufferKind, ManualPool, PoolBox, PoolClass, Result};

use crate::batch::Batch;
use crate::calc;
use crate::control::Control;
use crate::descriptor::{Descriptor, PoolBuffer};
use crate::fill::SlowPath;
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
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{ManualPool, Result};
///
/// struct Order {
///     price: u64,
///     quantity: u32,
/// }
///
/// fn notional<P: ManualPool>(pool: &P) -> Result<u64> {
///     let mut point = AllocationPoint::create(pool)?;
///     let order = point.alloc(Order { price: 10_250, quantity: 7 })?; // as long as the pool
///     let boxed = point.boxed(Order { price: 10_251, quantity: 1 })?; // freed when dropped
///     Ok(order.price * u64::from(order.quantity) + boxed.price * u64::from(boxed.quantity))
/// }
/// ```
pub struct AllocationPoint<'pool, P: PoolClass, C: Control = ()> {
    descriptor: NonNull<Descriptor<'pool, P, C>>,
    owns: PhantomData<(&'pool P, C)>,
}

// SAFETY: the descriptor stays in place while the pool is borrowed; its shared
// part is for all threads, and its slow part goes with the allocation point, which
// alone reaches it: a `&P`, which may be sent as pools are `Sync`, and a `C`.
unsafe impl<P: PoolClass, C: Control + Send> Send for AllocationPoint<'_, P, C> {}
// SAFETY: a shared allocation point only observes. It reads the shared part, which is
// atomic, and the pool, which is `Sync`, through a pointer that is not written
// meanwhile. Nothing else of the slow part is reached except through `&mut`.
unsafe impl<P: PoolClass, C: Control> Sync for AllocationPoint<'_, P, C> {}

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
            let reservation = self.reserve(Layout::new::<T>())?;
            let object = reservation.as_ptr().cast::<T>();
            // SAFETY: the reservation is `T`'s size and alignment, and ours.
            unsafe { object.write(make()) };
            // SAFETY: the object was just initialised, and is of the right kind.
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
    /// - [`Error::Parameter`](tripoint_core::Error::Parameter) for a layout the
    ///   pool class does not serve
    /// - those of [`PoolClass::fill`] where the buffer is full and the pool can
    ///   give no more; the allocation point is then usable, and reset unless its
    ///   class keeps what buffers did not use
    #[inline(always)]
    pub fn reserve(&mut self, layout: Layout) -> Result<Reservation<'_, 'pool, P, C>> {
        let (buffer, pool) = (self.buffer(), self.pool());
        let size = pool.reserve_size(layout).unwrap_or(usize::MAX);
        let init = buffer.init();
        let fits = calc::fits(init.addr(), size, buffer.limit().addr())
            && calc::is_aligned(init.addr(), layout.align(), pool.min_align());
        let (object, end) = if fits {
            (init, init.wrapping_add(size))
        } else {
            match self.slow().reserve(layout) {
                Some(end) => (end.as_ptr().wrapping_sub(size), end.as_ptr()),
                None => return Err(self.slow().failure),
            }
        };
        // SAFETY: a size that is not zero fitted below a limit, so the buffer is
        // attached and `init` not null; or the slow path saw to it.
        let object = unsafe { NonNull::new_unchecked(object) };
        Ok(Reservation::new(self, object, end))
    }

    /// Reserves room for `count` objects in a row, to be filled one by one and
    /// committed together.
    ///
    /// # Errors
    /// - [`Error::Parameter`](tripoint_core::Error::Parameter) where `count`
    ///   objects pass `isize::MAX` bytes
    /// - those of [`AllocationPoint::reserve`]
    #[inline(always)]
    pub fn batch<T>(&mut self, count: usize) -> Result<Batch<'_, 'pool, T, P, C>> {
        Batch::reserve(self, count)
    }

    /// An allocation point of the given kind, with its own control.
    ///
    /// # Errors
    /// As [`AllocationPoint::create`]; [`Error::Parameter`](tripoint_core::Error::Parameter)
    /// for a control too large for a descriptor (`C` has some 190 bytes).
    pub fn create_with(pool: &'pool P, kind: BufferKind, control: C) -> Result<Self> {
        Self::create_in(pool, kind, control, |_| ())
    }

    /// Creates an allocation point after `adjust` has changed its buffer's class, for
    /// example to a rank other than the pool's usual one. `adjust` gets the value that the
    /// pool itself made for the buffer, and cannot replace it with that of another pool
    /// (design/ap.md `.class.own`).
    ///
    /// # Errors
    /// As [`AllocationPoint::create_with`].
    pub fn create_in(
        pool: &'pool P,
        kind: BufferKind,
        mut control: C,
        adjust: impl FnOnce(&P::Buffer),
    ) -> Result<Self> {
        let class = pool.new_buffer();
        adjust(&class);
        // This comes before the claim of a descriptor, because the control may unwind.
        let stops = Stops::new(&mut control);
        let descriptor = Descriptor::claim(pool, kind, class)?;
        // SAFETY: a descriptor that was just claimed has no other owner, and is
        // given to nobody else until `drop` releases it.
        unsafe { SlowPath::begin(descriptor, pool, stops, control) };
        Ok(Self { descriptor, owns: PhantomData })
    }

    /// Gives what is not allocated back to the pool; the point becomes reset.
    pub fn empty(&mut self) {
        self.slow().empty();
    }

    /// Who can take control of this allocation point, from anywhere.
    #[must_use]
    pub fn tripper(&self) -> Tripper<'pool> {
        Tripper::new(self.buffer())
    }

    /// The buffer, to observe or to flip, with what its class keeps.
    #[inline(always)]
    #[must_use]
    pub fn buffer(&self) -> &'pool PoolBuffer<P::Buffer> {
        // SAFETY: a claimed descriptor is valid while the pool is borrowed, and
        // its shared part is only ever borrowed shared.
        unsafe { &(*self.descriptor.as_ptr()).shared }
    }

    /// The pool.
    #[inline(always)]
    #[must_use]
    pub fn pool(&self) -> &'pool P {
        let slow = UnsafeCell::raw_get(self.slow_cell()).cast::<SlowPath<'pool, P, C>>();
        // SAFETY: the slow part is initialised while the descriptor is claimed, and its
        // pointer to the pool is written before the allocation point exists. Only that
        // pointer is read: any thread may be here, but `C` belongs to one thread.
        unsafe { (&raw const (*slow).pool).read() }
    }

    /// The control that trips and stops are told to.
    #[must_use]
    pub fn control(&mut self) -> &mut C {
        &mut self.slow().control
    }

    /// Whether the allocation point has no memory at present.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.buffer().init().is_null()
    }

    /// Bytes left in the buffer, stops and trips apart.
    #[must_use]
    pub fn room(&self) -> usize {
        self.buffer().room()
    }

    /// The part that only slow paths touch.
    #[inline(always)]
    pub(crate) fn slow(&mut self) -> &mut SlowPath<'pool, P, C> {
        let slow = UnsafeCell::raw_get(self.slow_cell());
        // SAFETY: the slow part is initialised while the descriptor is claimed,
        // and reached only through its allocation point, mutably borrowed here.
        unsafe { (*slow).assume_init_mut() }
    }

    /// The address of the slow part.
    #[inline(always)]
    fn slow_cell(&self) -> *const UnsafeCell<MaybeUninit<SlowPath<'pool, P, C>>> {
        // SAFETY: a claimed descriptor is valid while the pool is borrowed.
        unsafe { &raw const (*self.descriptor.as_ptr()).slow }
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

impl<P: PoolClass, C: Control> Drop for AllocationPoint<'_, P, C> {
    fn drop(&mut self) {
        let finishing = Finishing(self);
        let detached = finishing.0.slow().detach();
        // SAFETY: called once, as it is not called when this is dropped.
        let (mut slow, popped) = unsafe { ManuallyDrop::new(finishing).release() };
        slow.tell_detached(detached);
        slow.tell_popped(popped);
    }
}

/// An allocation point that is being dropped. If a hook unwinds while memory goes back to the
/// arena, this releases the descriptor all the same.
struct Finishing<'a, 'pool, P: PoolClass, C: Control>(&'a mut AllocationPoint<'pool, P, C>);

impl<'pool, P: PoolClass, C: Control> Finishing<'_, 'pool, P, C> {
    /// Releases the descriptor of a detached buffer. Returns what may still have something to
    /// report, and the bytes of objects that the pool took back.
    ///
    /// # Safety
    /// - It is called once, and the allocation point is not used afterwards.
    unsafe fn release(&mut self) -> (SlowPath<'pool, P, C>, u64) {
        let pool = self.0.pool();
        let popped = self.0.slow().finish();
        // SAFETY: the allocation point is the owner and of this pool, and the caller does
        // not use it afterwards.
        (unsafe { Descriptor::release(self.0.descriptor, pool) }, popped)
    }
}

impl<P: PoolClass, C: Control> Drop for Finishing<'_, '_, P, C> {
    fn drop(&mut self) {
        // SAFETY: this is dropped once and is not kept after `release`; the allocation point
        // is being dropped.
        drop(unsafe { self.release() });
    }
}

impl<P: PoolClass, C: Control> fmt::Debug for AllocationPoint<'_, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AllocationPoint").field(&self.buffer().snapshot()).finish()
    }
}
