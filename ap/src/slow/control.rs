//! What a client does when control is taken from its fast path: by trips from outside, and
//! at stops that it set itself.

use core::fmt;

use tripoint_core::Addr;

/// An object that was allocated at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The address of the object.
    pub object: Addr,
    /// Its size in bytes, as the pool rounded it.
    pub size: usize,
    /// The byte of the object, counted from zero, that the stop was set at.
    pub offset: usize,
}

/// The owner's side of control, called on the owner's thread in slow paths only.
///
/// A **stop** is a place before the end of the buffer where the fast path gives
/// way. It is set on the same `limit` word as trips and the buffer's end, so it
/// costs the fast path nothing ([design/ap.md `.stop.limit`](crate::design::ap)). Distances
/// are counted in bytes allocated through this allocation point, across buffers:
/// after [`next_stop`](Control::next_stop) returns `n`, the stop is at the object that
/// holds byte `n`, counted from zero. Allocation sampling is built on this.
///
/// A method cannot use the allocation point that it belongs to, because that is mutably
/// borrowed. It may unwind: nothing is lost ([design/ap.md
/// `.slow.report`](crate::design::ap)).
///
/// ```
/// use tripoint_ap::{AllocationPoint, Control, Stop};
/// use tripoint_core::{BufferKind, PoolClass, Result};
///
/// /// Counts one object in about a million bytes.
/// #[derive(Debug, Default)]
/// struct Sampler {
///     objects: usize,
/// }
///
/// impl Control for Sampler {
///     fn next_stop(&mut self) -> usize {
///         1_000_000 // or better a random number
///     }
///
///     fn stopped(&mut self, _stop: Stop) {
///         self.objects += 1;
///     }
/// }
///
/// fn sampled<P: PoolClass>(pool: &P) -> Result<AllocationPoint<'_, P, Sampler>> {
///     AllocationPoint::create_with(pool, BufferKind::Mutator, Sampler::default())
/// }
/// ```
pub trait Control: fmt::Debug {
    /// Returns how many more bytes may be allocated before the next stop; `usize::MAX`
    /// for no stop. This is called when the allocation point is created, and whenever a stop
    /// was reported or withdrawn.
    fn next_stop(&mut self) -> usize {
        usize::MAX
    }

    /// Is notified that an object at a stop was committed. This is called in the next slow
    /// path after the commit, at the latest when the allocation point is dropped; a stack
    /// pool has taken the object back by then. It is not called for an object that was
    /// abandoned or whose commit failed.
    fn stopped(&mut self, stop: Stop) {
        let _ = stop;
    }

    /// Is notified that `requests` trips were requested since the last call. Requesting a trip
    /// of the same point here would have this called again without end.
    fn tripped(&mut self, requests: usize) {
        let _ = requests;
    }
}

/// Sets no stops, and does nothing on a trip.
impl Control for () {}
