//! Reserve and commit: the fast path. All that is cold is in `slow`.
//!
//! ```text
//!   reserve   init  := [init]            commit   [init] := end
//!             end   := init + size                light barrier     (flippable)
//!             limit := [limit]                    [limit] = 0 ?     (flippable)
//!             end <= limit ?
//! ```
//!
//! Between the two the object's end is in the [`Reservation`]: the busy state, as a value.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{Control, PoolClass, Result, aver};

use crate::point::AllocationPoint;
use crate::protocol::buffer::CHECKS;
use crate::protocol::calc;
use crate::slow::objects::{Form, Untyped};

impl<'pool, P: PoolClass, C: Control> AllocationPoint<'pool, P, C> {
    /// Reserves memory for `layout`. Nothing is allocated until the token is
    /// committed; dropping it abandons the reservation.
    ///
    /// For a layout known at compile time this is one sum and one compare. A
    /// layout of size zero gets the smallest object of the pool.
    ///
    /// # Errors
    /// - [`Error::Parameter`](tripoint_core::Error::Parameter) for a layout that the
    ///   pool class does not serve
    /// - those of [`PoolClass::fill`], if the buffer is full and the pool has no
    ///   more memory; the allocation point is then usable, and reset unless its
    ///   class keeps what buffers did not use
    #[inline(always)]
    pub fn reserve(&mut self, layout: Layout) -> Result<Reservation<'_, 'pool, P, C>> {
        self.reserve_for::<Untyped>(layout)
    }

    /// Reserves memory of which it is known what objects it is for.
    #[inline(always)]
    pub(crate) fn reserve_for<F: Form>(&mut self, layout: Layout) -> Result<Reservation<'_, 'pool, P, C>> {
        let (object, end) = match self.next_fit(layout) {
            Ok(memory) => memory,
            Err(size) => self.reserve_slowly::<F>(layout, size)?,
        };
        Ok(Reservation { point: self, object, end })
    }

    /// The memory for `layout` that the buffer has below its limit, from where to where; otherwise the bytes that it takes.
    #[inline(always)]
    pub(crate) fn next_fit(&self, layout: Layout) -> Result<(NonNull<u8>, *mut u8), usize> {
        let (buffer, pool) = (self.buffer(), self.pool());
        let size = pool.reserve_size(layout).unwrap_or(usize::MAX);
        let init = buffer.init();
        let fits = calc::fits(init.addr(), size, buffer.limit().addr())
            && calc::is_aligned(init.addr(), layout.align(), pool.min_align());
        // SAFETY: a size that is not zero fitted below a limit, so the buffer is attached and `init` is not null.
        if fits { Ok((unsafe { NonNull::new_unchecked(init) }, init.wrapping_add(size))) } else { Err(size) }
    }

    /// The slow path for memory that takes `size` bytes: returns from where to where it goes.
    #[inline(always)]
    pub(crate) fn reserve_slowly<F: Form>(
        &mut self,
        layout: Layout,
        size: usize,
    ) -> Result<(NonNull<u8>, *mut u8)> {
        let Some(end) = self.slow().reserve::<F>(layout) else { return Err(self.slow().failure) };
        // SAFETY: the object begins at `init` of a buffer that was just found attached.
        let object = unsafe { NonNull::new_unchecked(end.as_ptr().wrapping_sub(size)) };
        Ok((object, end.as_ptr()))
    }

    /// Commits the object from `object`, which is where `init` stands, to `end`.
    #[inline(always)]
    pub(crate) fn commit(&mut self, object: NonNull<u8>, end: *mut u8) -> Result<(), CommitFailed> {
        aver!(object.as_ptr() < end, "an object at {object:p} that ends at {end:p}");
        if CHECKS {
            let init = self.buffer().init();
            aver!(init == object.as_ptr(), "a commit at {object:p} in a buffer allocated to {init:p}");
        }
        if !P::FLIPPABLE {
            self.buffer().declare(end);
            return Ok(());
        }
        let stands = self.buffer().declare_untripped(end, self.pool().barrier())
            || self.slow().commit_tripped(object, end);
        if stands { Ok(()) } else { Err(CommitFailed) }
    }
}

/// A commit failed: a flip had not seen the object, and so it does not exist.
/// Reserve again and make it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitFailed;

impl fmt::Display for CommitFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the buffer was flipped between reserve and commit: reserve again and make the object anew",
        )
    }
}

impl core::error::Error for CommitFailed {}

/// Memory reserved but not yet allocated.
///
/// A reservation borrows the allocation point, so reservations do not nest. It carries
/// the end of the object, so the fast path need not store that anywhere.
/// Committing consumes it; dropping it abandons the reservation.
///
/// ```
/// use core::alloc::Layout;
/// use core::ptr::NonNull;
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{ManualPool, Result};
///
/// fn zeroed<P: ManualPool>(point: &mut AllocationPoint<'_, P>, layout: Layout) -> Result<NonNull<u8>> {
///     loop {
///         let reservation = point.reserve(layout)?;
///         // SAFETY: reserved memory is valid for writes of its size.
///         unsafe { reservation.as_ptr().write_bytes(0, reservation.size()) };
///         // SAFETY: the object was just initialised.
///         if let Ok(object) = unsafe { reservation.commit() } {
///             return Ok(object);
///         }
///     }
/// }
/// ```
#[must_use = "dropping a reservation abandons it"]
#[derive(Debug)]
pub struct Reservation<'ap, 'pool, P: PoolClass, C: Control = ()> {
    point: &'ap mut AllocationPoint<'pool, P, C>,
    object: NonNull<u8>,
    end: *mut u8,
}

impl<P: PoolClass, C: Control> Reservation<'_, '_, P, C> {
    /// The memory for the object: valid for writes of [`Reservation::size`] bytes,
    /// aligned as the layout asked, not initialised.
    #[inline(always)]
    #[must_use]
    pub const fn as_ptr(&self) -> NonNull<u8> {
        self.object
    }

    /// The bytes reserved: the layout's size, as the pool rounded it.
    #[inline(always)]
    #[must_use]
    pub fn size(&self) -> usize {
        self.end.addr() - self.object.addr().get()
    }

    /// Allocates the object.
    ///
    /// In a manual pool this is one store and always succeeds. In a flippable
    /// one it is a store, the pool's light barrier, and a test.
    ///
    /// # Errors
    /// [`CommitFailed`], in flippable pools only. Until the allocation point is used again,
    /// the caller may still drop things from the memory.
    ///
    /// # Safety
    /// - The object is initialised, as far as readers of the pool's objects
    ///   expect it: for a flippable pool, a whole formatted object.
    /// - In a pool with frames, nothing uses the object after its frame is popped or the
    ///   allocation point is dropped.
    #[inline(always)]
    pub unsafe fn commit(self) -> Result<NonNull<u8>, CommitFailed> {
        let Self { point, object, end } = self;
        point.commit(object, end)?;
        Ok(object)
    }
}
