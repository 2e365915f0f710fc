//! What a client does when control is taken from its fast path: by trips from outside, and
//! at stops that it set itself.

use core::fmt;

use crate::words::addr::Addr;

/// An object that was allocated at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The address of the object.
    pub object: Addr,
    /// Its size in bytes, as the pool rounded it. All objects of a batch together count as one.
    pub size: usize,
    /// The byte of the object, counted from zero, that the stop was set at.
    pub offset: usize,
}

/// The owner's side of control, called on the owner's thread in slow paths only.
///
/// A **stop** is a place before the end of the buffer where the fast path gives
/// way. It is set on the same `limit` word as trips and the buffer's end, so it
/// costs the fast path nothing (`design/ap.md` `.stop.limit`). Distances
/// are counted in bytes allocated through this allocation point, across buffers:
/// after [`next_stop`](Control::next_stop) returns `n`, the stop is at the object that
/// holds byte `n`, counted from zero. Allocation sampling is built on this.
///
/// A method cannot use the allocation point that it belongs to, because that is mutably
/// borrowed. It may unwind: nothing is lost (`design/ap.md` `.slow.report`).
///
/// Two controls serve one allocation point as a [`ControlPair`](crate::ControlPair).
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{BufferKind, Control, PoolClass, Result, Stop};
///
/// /// Counts one object in about a million bytes.
/// #[derive(Debug, Default)]
/// struct Counter {
///     objects: usize,
/// }
///
/// impl Control for Counter {
///     fn next_stop(&mut self) -> usize {
///         1_000_000
///     }
///
///     fn stopped(&mut self, _stop: Stop) {
///         self.objects += 1;
///     }
/// }
///
/// fn counted<P: PoolClass>(pool: &P) -> Result<AllocationPoint<'_, P, Counter>> {
///     AllocationPoint::create_with(pool, BufferKind::Mutator, Counter::default())
/// }
/// ```
pub trait Control: fmt::Debug {
    /// Whether this control may ever set a stop. Allocation points keep no account of stops for
    /// a control that sets none: neither [`next_stop`](Control::next_stop) nor
    /// [`move_stop`](Control::move_stop) is called then.
    const SETS_STOPS: bool = true;

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

    /// Is notified that a stop was withdrawn: its object was abandoned, or its commit failed,
    /// or of a batch no more than the bytes before the stop were committed. `stop.size` is how many
    /// bytes were committed all the same.
    fn withdrawn(&mut self, stop: Stop) {
        let _ = stop;
    }

    /// Is notified that `requests` trips were requested since the last call. Requesting a trip
    /// of the same point here would have this called again without end.
    fn tripped(&mut self, requests: usize) {
        let _ = requests;
    }

    /// Returns a new distance from here to the next stop, `usize::MAX` for no stop; or `None` to
    /// keep the present stop, which is `left` bytes away (`usize::MAX` if there is none). This
    /// is called after trips, so a trip is how another thread has a control change its mind.
    fn move_stop(&mut self, left: usize) -> Option<usize> {
        let _ = left;
        None
    }
}

/// Sets no stops, and does nothing on a trip.
impl Control for () {
    const SETS_STOPS: bool = false;
}
