//! Allocation points: making, emptying, observing and dropping them. How they reserve and
//! commit is in `reservation.rs`.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;

use tripoint_core::internal::Ordering;
use tripoint_core::{
    BufferClass as _, BufferKind, Check, CheckError, CheckLevel, Control, Describe, KeepsInBuffer, OwnBuffer,
    PoolClass, Result,
};

use crate::protocol::trip::Tripper;
use crate::slow::call::{Call, EndsCall};
use crate::slow::descriptor::{Descriptor, PoolBuffer};
use crate::slow::slow_path::SlowPath;
use crate::slow::stops::Stops;

/// A place to allocate in a pool: a buffer, and the right to use it.
///
/// One thread uses it at a time; any number of others may [trip](Tripper) it.
/// Dropping it returns what it did not allocate to the pool.
///
/// It may move between threads if its pool is `Sync`. Generic code that sends one
/// asks for that: `P: PoolClass + Sync`.
///
/// `C` is the [control](Control), which is notified of trips and stops; `()`
/// ignores them.
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
#[doc(alias("bump", "TLAB"))]
pub struct AllocationPoint<'pool, P: PoolClass, C: Control = ()> {
    descriptor: NonNull<PointDescriptor<'pool, P, C>>,
    owns: PhantomData<(&'pool P, C)>,
}

type PointDescriptor<'pool, P, C> = Descriptor<<P as KeepsInBuffer>::Buffer, SlowPath<'pool, P, C>>;

// SAFETY: the descriptor stays in place while the pool is borrowed; its shared
// part is for all threads, and its slow part goes with the allocation point, which
// alone reaches it: a `&P`, which may be sent if the pool is `Sync`, and a `C`.
unsafe impl<P: PoolClass + Sync, C: Control + Send> Send for AllocationPoint<'_, P, C> {}
// SAFETY: a shared allocation point only observes. It reads the shared part, which is
// atomic, and the pool, if that is `Sync`, through a pointer that is not written
// meanwhile. Nothing else of the slow part is reached except through `&mut`.
unsafe impl<P: PoolClass + Sync, C: Control> Sync for AllocationPoint<'_, P, C> {}

impl<'pool, P: PoolClass> AllocationPoint<'pool, P> {
    /// Creates a reset allocation point in `pool`. It gets memory at the first reserve.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`](tripoint_core::Arena::alloc_descriptor):
    /// the descriptor needs some, unless one is left from an earlier point.
    pub fn create(pool: &'pool P) -> Result<Self> {
        Self::create_with(pool, BufferKind::Mutator, ())
    }
}

impl<'pool, P: PoolClass, C: Control> AllocationPoint<'pool, P, C> {
    /// Creates an allocation point of the given kind, with its own control.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::create`], and
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) for a control too large for a
    /// descriptor (`C` may have about 700 bytes).
    pub fn create_with(pool: &'pool P, kind: BufferKind, control: C) -> Result<Self> {
        Self::create_in(pool, kind, control, |_| ())
    }

    /// Creates an allocation point after `adjust` has changed its buffer's class, for
    /// example to a rank other than the pool's usual one. `adjust` gets the value that the
    /// pool itself made for the buffer, and cannot replace it with that of another pool
    /// ([design/ap.md `.class.own`](crate::design::ap)).
    ///
    /// # Errors
    /// As [`AllocationPoint::create_with`].
    pub fn create_in(
        pool: &'pool P,
        kind: BufferKind,
        control: C,
        adjust: impl FnOnce(&P::Buffer),
    ) -> Result<Self> {
        let class = pool.new_buffer();
        adjust(&class);
        // This comes before the claim of a descriptor, because the control may unwind.
        let mut stops = Stops::new(control);
        stops.begin_call();
        let descriptor = Descriptor::claim(pool, kind, class, PoolBuffer::<P::Buffer>::OPERATIONS)?;
        // SAFETY: the descriptor was just claimed in this pool, and only the new allocation
        // point uses it until `drop` releases it.
        unsafe { SlowPath::begin(descriptor, pool, stops) };
        let mut point = Self { descriptor, owns: PhantomData };
        point.slow().report_created();
        point.slow().stops.end_call();
        Ok(point)
    }

    /// Returns to the pool what is not allocated, and what was freed through this point. The allocation point becomes
    /// reset.
    pub fn empty(&mut self) {
        let call = self.slow().begin_call();
        call.0.flush();
        call.0.empty();
        call.0.report_empty();
    }

    /// Returns this allocation point once more, for an interface that lends points to code which cannot borrow them
    /// exclusively.
    ///
    /// # Safety
    /// - Of the point and all that this has returned for it, one is used at a time, on the thread that has the point.
    /// - None of them is used after the point was dropped, and only the point itself is ever dropped.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn alias(&self) -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self { descriptor: self.descriptor, owns: PhantomData })
    }

    /// Returns a handle by which any thread or handler can trip this allocation point.
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

    /// Returns the pool that fills this point's buffer.
    #[inline(always)]
    #[must_use]
    pub fn pool(&self) -> &'pool P {
        let slow = UnsafeCell::raw_get(self.slow_cell()).cast::<SlowPath<'pool, P, C>>();
        // SAFETY: the slow part is initialised while the descriptor is claimed, and its
        // pointer to the pool is written before the allocation point exists. Only that
        // pointer is read: any thread may be here, but `C` belongs to one thread.
        unsafe { (&raw const (*slow).pool).read() }
    }

    /// The control, which is notified of trips and stops.
    #[must_use]
    pub fn control(&mut self) -> &mut C {
        &mut self.slow().stops.control
    }

    /// Whether the allocation point has no memory at present.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.buffer().init().is_null()
    }

    /// Whether the allocation point is not between a reserve and its commit.
    ///
    /// A [`Reservation`](crate::Reservation), a [`Batch`](crate::Batch) or a [`Frame`](crate::Frame) borrows the point, so
    /// code that has it as `&mut` knows that there is none. What remains is code that moves `alloc` as clients in C do. To
    /// an observer, a [`Snapshot`](crate::Snapshot) says what the words tell.
    #[must_use]
    pub fn is_ready(&mut self) -> bool {
        // `alloc` rests where it was when the memory was attached, unless a client in C moves it.
        self.buffer().fields.alloc.load(Ordering::Relaxed) <= self.buffer().init()
    }

    /// Bytes left in the buffer, whatever stops or trips are pending.
    #[must_use]
    pub fn room(&self) -> usize {
        self.buffer().room() + self.buffer().class().waiting()
    }

    /// The buffer, as its owner passes it to the pool.
    #[inline(always)]
    pub(crate) fn own(&mut self) -> OwnBuffer<'_, P, P::Buffer> {
        // SAFETY: the pool made what it keeps, or one with its header did for an earlier owner, and claiming renewed it.
        // The allocation point is the buffer's owner, and mutably borrowed as long as this is used.
        unsafe { OwnBuffer::new(self.pool(), self.buffer().class()) }
    }

    /// The part that only slow paths touch.
    #[inline(always)]
    pub(crate) fn slow(&mut self) -> &mut SlowPath<'pool, P, C> {
        let slow = UnsafeCell::raw_get(self.slow_cell());
        // SAFETY: the slow part is initialised while the descriptor is claimed,
        // and reached only through its allocation point, mutably borrowed here.
        unsafe { (*slow).assume_init_mut() }
    }

    /// Notifies a control that observes calls that one begins, and when it is over.
    pub(crate) fn begin_call(&mut self) -> Call<&mut Self> {
        self.slow().stops.begin_call();
        Call(self)
    }

    /// The address of the slow part.
    #[inline(always)]
    fn slow_cell(&self) -> *const UnsafeCell<MaybeUninit<SlowPath<'pool, P, C>>> {
        // SAFETY: a claimed descriptor is valid while the pool is borrowed.
        unsafe { &raw const (*self.descriptor.as_ptr()).slow }
    }
}

impl<P: PoolClass, C: Control> EndsCall for &mut AllocationPoint<'_, P, C> {
    fn end_call(&mut self) {
        self.slow().stops.end_call();
    }
}

impl<P: PoolClass, C: Control> Drop for AllocationPoint<'_, P, C> {
    fn drop(&mut self) {
        let mut ending = Ending { point: self, is_finished: false };
        ending.point.slow().stops.begin_call();
        let detached = ending.point.slow().detach();
        ending.point.slow().flush();
        let popped = ending.finish();
        let slow = ending.point.slow();
        slow.report_detached(detached);
        slow.report_popped(popped);
        slow.report_destroyed();
    }
}

/// An allocation point that is being dropped (design/core.md `.event.order`). Its descriptor is released last, because from then
/// on another point may have it; and it is released also if a hook or a control unwinds.
struct Ending<'a, 'pool, P: PoolClass, C: Control> {
    point: &'a mut AllocationPoint<'pool, P, C>,
    is_finished: bool,
}

impl<P: PoolClass, C: Control> Ending<'_, '_, P, C> {
    /// Returns to the pool what its class keeps for the buffer. Returns the bytes of objects that
    /// the pool took back.
    fn finish(&mut self) -> u64 {
        self.is_finished = true;
        self.point.slow().finish()
    }
}

impl<P: PoolClass, C: Control> Drop for Ending<'_, '_, P, C> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.finish();
        }
        let (descriptor, pool) = (self.point.descriptor, self.point.pool());
        // SAFETY: the allocation point is the owner and of this pool. It is being dropped, by a
        // function that does not use it after this value, and this value is dropped once.
        drop(unsafe { Descriptor::release(descriptor, pool) });
    }
}

impl<P: PoolClass, C: Control> Check for AllocationPoint<'_, P, C> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.buffer().check(level)?;
        if level >= CheckLevel::Deep {
            self.pool().check(level)?;
        }
        Ok(())
    }
}

impl<P: PoolClass, C: Control> Describe for AllocationPoint<'_, P, C> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.buffer().describe(out, depth)?;
        self.pool().header().describe(out, depth + 1)
    }
}

impl<P: PoolClass, C: Control> fmt::Debug for AllocationPoint<'_, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AllocationPoint").field(&self.buffer().snapshot()).finish()
    }
}
