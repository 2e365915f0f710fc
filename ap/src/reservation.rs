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

/// How an object fits into what is left of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Fit {
    /// Where it would begin.
    init: *mut u8,
    /// The bytes that it takes.
    size: usize,
    pub(crate) fits: bool,
}

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
        let fit = self.next_fit(layout);
        self.reserve_as_it_fits::<F>(layout, fit)
    }

    /// As [`AllocationPoint::reserve_for`], after a look at the buffer.
    #[inline(always)]
    pub(crate) fn reserve_as_it_fits<F: Form>(
        &mut self,
        layout: Layout,
        Fit { init, size, fits }: Fit,
    ) -> Result<Reservation<'_, 'pool, P, C>> {
        let (object, end) = if fits {
            (init, init.wrapping_add(size))
        } else {
            match self.slow().reserve::<F>(layout) {
                Some(end) => (end.as_ptr().wrapping_sub(size), end.as_ptr()),
                None => return Err(self.slow().failure),
            }
        };
        // SAFETY: on the fast path a size that is not zero fitted below a limit, so the
        // buffer is attached and `init` is not null. On the slow path `object` is `init` of
        // a buffer that was just found attached.
        let object = unsafe { NonNull::new_unchecked(object) };
        Ok(Reservation { point: self, object, end })
    }

    /// Whether the buffer has memory for `layout` below its limit.
    #[inline(always)]
    pub(crate) fn next_fit(&self, layout: Layout) -> Fit {
        let (buffer, pool) = (self.buffer(), self.pool());
        let size = pool.reserve_size(layout).unwrap_or(usize::MAX);
        let init = buffer.init();
        let fits = calc::fits(init.addr(), size, buffer.limit().addr())
            && calc::is_aligned(init.addr(), layout.align(), pool.min_align());
        Fit { init, size, fits }
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
/// Reserve again, and make the object again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CommitFailed;

impl fmt::Display for CommitFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the buffer was flipped between reserve and commit: reserve again and make the object anew",
        )
    }
}

tripoint_core::debug_as_text!(CommitFailed);

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

    /// The bytes that may be written: the layout's size, as the pool rounded it, without what the class itself takes at the
    /// end ([`PoolClass::SEAL_SIZE`]).
    #[inline(always)]
    #[must_use]
    pub fn size(&self) -> usize {
        self.end.addr() - self.object.addr().get() - P::SEAL_SIZE
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
