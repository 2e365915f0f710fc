//! Taking control: how any thread asks an owner to give way.
//!
//! The owner answers in `rearm`. Both sides follow [`Trips`](tripoint_core::internal::Trips),
//! with the buffer's `limit` as the word that a trip zeroes.

use crate::protocol::buffer::Buffer;

/// Trips one allocation point, from any thread, signal handler or interrupt
/// handler.
///
/// A tripper may outlive the allocation point, but not the pool. After the allocation
/// point is dropped a trip does no harm, even if another allocation point has its
/// descriptor by then.
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{PoolClass, Result};
///
/// fn trip_from_elsewhere<P: PoolClass>(pool: &P) -> Result<()> {
///     let point = AllocationPoint::create(pool)?;
///     let tripper = point.tripper();
///     std::thread::scope(|scope| drop(scope.spawn(move || tripper.trip())));
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tripper<'pool> {
    buffer: &'pool Buffer,
}

impl<'pool> Tripper<'pool> {
    pub(crate) const fn new(buffer: &'pool Buffer) -> Self {
        Self { buffer }
    }

    /// Asks the owner to give way: it takes the slow path, which notifies its control. This
    /// costs two read-modify-writes; it is wait-free, takes no lock, and is never lost.
    ///
    /// A reserve that happens after this call, in the sense of the memory model, takes the
    /// slow path, unless an earlier reserve has answered this trip. Without such an order, a
    /// reserve takes the slow path as soon as the processor shows it the store. That is
    /// usually a matter of some tens of ns, but no number of reserves is promised
    /// ([design/ap.md `.trip.visible`](crate::design::ap)).
    #[inline]
    pub fn trip(&self) {
        self.buffer.trip();
    }

    /// The buffer that it trips.
    #[must_use]
    pub const fn buffer(&self) -> &'pool Buffer {
        self.buffer
    }
}

impl Buffer {
    /// Takes control from the fast path. Any thread may call this, as it may call
    /// [`Tripper::trip`].
    #[inline]
    pub fn trip(&self) {
        self.trips.request([&self.fields.limit]);
    }
}
