//! Taking control: asking for a trip, and the owner's answer.
//!
//! A trip must not be lost. The owner re-arms `limit` while others store zero in
//! it; a plain store, or even a compare-exchange, would swallow a trip that
//! comes while another is being handled. So a requester counts first and trips
//! second, both by read-modify-write, and the owner counts again after re-arming
//! (design/ap.md `.trip.protocol`):
//!
//! ```text
//!   requester                     owner
//!   requests += 1                 again: seen := requests
//!   limit :=: 0                          handle what is new in `seen`
//!                                        limit :=: where to stop next
//!                                        if requests != seen: limit :=: 0, again
//! ```

use core::ptr;

use tripoint_core::internal::Ordering;

use crate::buffer::Buffer;
use crate::owner::Owner;

/// Trips one allocation point, from any thread, signal handler or interrupt
/// handler.
///
/// It may outlive the allocation point, but not the pool: tripping an allocation
/// point that is gone, or its successor, harms nobody.
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
    /// (design/ap.md `.trip.visible`).
    pub fn trip(&self) {
        self.buffer.trip();
    }

    /// The buffer it trips.
    #[must_use]
    pub const fn buffer(&self) -> &'pool Buffer {
        self.buffer
    }
}

impl Buffer {
    /// Anyone: takes control from the fast path.
    #[inline]
    pub fn trip(&self) {
        self.trip_requests.fetch_add(1, Ordering::AcqRel);
        self.fields.limit.swap(ptr::null_mut(), Ordering::AcqRel);
    }
}

impl Owner<'_> {
    /// Hears of trips not handled before, and goes on from a flip. `on_trip` gets
    /// the number of new requests.
    pub fn observe_trips(&mut self, on_trip: &mut impl FnMut(usize)) {
        let seen = self.buffer.trip_requests.load(Ordering::Acquire);
        let requests = seen.wrapping_sub(self.handled);
        // Stored before the control is notified, because that may unwind: a trip is reported once.
        self.handled = seen;
        self.unflip();
        if requests != 0 {
            on_trip(requests);
        }
    }

    /// In the ready state: publishes `limit`, unless the buffer is tripped
    /// meanwhile, in which case it handles that and publishes again.
    ///
    /// When it returns, any trip requested and not handled has left `limit` zero.
    /// It goes round once more for each trip that comes while it runs.
    pub fn rearm(&mut self, limit: *mut u8, on_trip: &mut impl FnMut(usize)) {
        loop {
            self.observe_trips(on_trip);
            self.publish_limit(limit);
            if self.buffer.trip_requests.load(Ordering::Acquire) == self.handled {
                return;
            }
            self.buffer.fields.limit.swap(ptr::null_mut(), Ordering::AcqRel);
        }
    }

    /// Publishes `limit` without a second look: the step of [`Owner::rearm`] that
    /// alone would lose trips. For models of what goes wrong.
    pub fn publish_limit(&mut self, limit: *mut u8) {
        self.buffer.fields.limit.swap(limit, Ordering::AcqRel);
    }
}
