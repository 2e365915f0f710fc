//! What the owner of an allocation point does when control is taken from its
//! fast path: trips from outside, and stops it set itself.

use core::fmt;

use tripoint_core::Addr;

/// An object at whose allocation a stop was waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The address of the object.
    pub object: Addr,
    /// Its size in bytes, as the pool rounded it.
    pub size: usize,
    /// The byte of the object, counted from zero, that the stop waited at.
    pub offset: usize,
}

/// The owner's side of control, called on the owner's thread in slow paths only.
///
/// A **stop** is a place before the end of the buffer where the fast path gives
/// way, set on the same `limit` word as trips and the buffer's end, so that it
/// costs the fast path nothing (design/ap.md `.stop.limit`). Distances are
/// counted in bytes allocated through this allocation point, across buffers:
/// after a draw of `n` the object that holds byte `n`, counted from zero,
/// is the one stopped at. Allocation sampling is made of this.
///
/// Methods must not use the allocation point they belong to; they cannot, because it is
/// mutably borrowed. They may unwind: nothing is lost (design/ap.md `.slow.report`).
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
    /// How many more bytes may be allocated before the next stop; `usize::MAX`
    /// for no stop. Asked when the allocation point is made, and after each stop
    /// was taken or withdrawn.
    fn next_stop(&mut self) -> usize {
        usize::MAX
    }

    /// An object at a stop was committed. This is called at the next slow path after the
    /// commit, at the latest when the allocation point is dropped; a stack pool has taken
    /// the object back by then. It is not called for an object that was abandoned or that
    /// failed to commit.
    fn stopped(&mut self, stop: Stop) {
        let _ = stop;
    }

    /// `requests` trips were asked for since the last call. To ask for one here is
    /// to be called again, and again.
    fn tripped(&mut self, requests: usize) {
        let _ = requests;
    }
}

/// No stops, and nothing to do on a trip.
impl Control for () {}
