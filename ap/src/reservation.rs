//! The token of a reservation: the busy state, as a value.

use core::fmt;
use core::ptr::NonNull;

use tripoint_core::PoolClass;

use crate::control::Control;
use crate::point::AllocationPoint;

/// A commit failed: a flip had not seen the object, and it does not exist.
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
/// It borrows the allocation point, so reservations do not nest, and it carries
/// where the object ends, so the fast path need not store that anywhere.
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
///         // SAFETY: what is reserved is valid for writes of its size.
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

impl<'ap, 'pool, P: PoolClass, C: Control> Reservation<'ap, 'pool, P, C> {
    #[inline(always)]
    pub(crate) fn new(
        point: &'ap mut AllocationPoint<'pool, P, C>,
        object: NonNull<u8>,
        end: *mut u8,
    ) -> Self {
        Self { point, object, end }
    }

    /// Where the object goes: valid for writes of [`Reservation::size`] bytes,
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
    /// [`CommitFailed`], in flippable pools only: the memory is still the
    /// caller's to drop things from, until the allocation point is used again.
    ///
    /// # Safety
    /// - The object is initialised, as far as readers of the pool's objects
    ///   expect it: for a flippable pool, a whole formatted object.
    /// - In a pool with frames, nothing uses the object after its frame is popped or the
    ///   allocation point is dropped.
    #[inline(always)]
    pub unsafe fn commit(self) -> Result<NonNull<u8>, CommitFailed> {
        let Self { point, object, end } = self;
        point.commit_to(object, end)?;
        Ok(object)
    }
}

impl<P: PoolClass, C: Control> AllocationPoint<'_, P, C> {
    /// Commits the object from `object`, which is where `init` stands, to `end`.
    #[inline(always)]
    pub(crate) fn commit_to(&mut self, object: NonNull<u8>, end: *mut u8) -> Result<(), CommitFailed> {
        if !P::FLIPPABLE {
            self.buffer().declare(end);
            return Ok(());
        }
        if self.buffer().commit(end, self.pool().barrier()) || self.slow().commit_tripped(object, end) {
            return Ok(());
        }
        Err(CommitFailed)
    }
}
