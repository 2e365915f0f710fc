//! What a client does when its fast path gives way: on trips that other threads requested, and
//! at stops that it set itself.

use core::fmt;

use crate::events::event::Event;
use crate::values::addr::Addr;
use crate::values::pool_id::PoolId;

/// An object, or a batch of objects, that contains the byte of a stop. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The pool.
    pub pool: PoolId,
    /// The name of the pool's class.
    pub class: &'static str,
    /// The buffer, which tells the points of an arena apart: its address.
    pub buffer: Addr,
    /// The address of the object; in a batch, of the first.
    pub object: Addr,
    /// The size, as the pool rounded it; of a batch, that of all objects together.
    pub size: usize,
    /// The number of objects: one, or as many as there are in the batch.
    pub count: usize,
    /// The size of each object of a batch, without what the pool adds after the last. For a single
    /// object it is the same as `size`.
    pub unit: usize,
    /// The size of the memory that the buffer was filled with, or of the large object if the buffer
    /// was filled for that alone.
    pub fill_size: usize,
    /// The byte of the object or batch that the stop was set at, counted from zero.
    pub offset: usize,
    /// The size that was asked for, before the pool rounded it; of a batch, for all objects together.
    pub requested: usize,
    /// The alignment that was asked for.
    pub align: usize,
    /// The name of the objects' type, if the call that allocates them names one.
    pub type_name: Option<&'static str>,
}

impl Stop {
    /// The one object that contains the byte at `offset`, as if it were allocated by itself at a stop
    /// there. What the pool adds after a batch belongs to the last object
    /// (`design/ap.md` `.stop.batch`).
    #[must_use]
    pub const fn object_at(&self, offset: usize) -> Self {
        let index = match offset.checked_div(self.unit) {
            Some(index) if index < self.count => index,
            _ => self.count.saturating_sub(1),
        };
        let start = index * self.unit;
        let size = if index + 1 < self.count { self.unit } else { self.size.saturating_sub(start) };
        let object = Addr::new(self.object.get() + start);
        Self { object, size, count: 1, unit: size, offset: offset.saturating_sub(start), ..*self }
    }
}

/// The owner's side of control, called on the owner's thread in slow paths only.
///
/// A **stop** is a place before the end of the buffer where the fast path gives
/// way. It is set on the same `limit` word as trips and the buffer's end, so it
/// costs the fast path nothing (`design/ap.md` `.stop.limit`). Distances
/// are counted in bytes allocated through this allocation point, across buffers:
/// after [`next_stop`](Control::next_stop) returns `n`, the stop is at the object that
/// contains byte `n`, counted from zero. Allocation sampling is built on this.
///
/// | an object at a stop is | what is called |
/// |---|---|
/// | reserved | [`reserved`](Control::reserved) |
/// | committed | [`stopped`](Control::stopped), and [`next_stop`](Control::next_stop) for the next stop |
/// | abandoned, or its commit fails | [`withdrawn`](Control::withdrawn); the stop stays, for the next object |
///
/// A method cannot use the allocation point that its control belongs to, because that is mutably
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

    /// Whether this control is notified of calls on its point ([`called`](Control::called)).
    const OBSERVES_CALLS: bool = false;

    /// Returns how many more bytes may be allocated before the next stop; `usize::MAX`
    /// for no stop. This is called when the allocation point is created, and whenever a stop
    /// was reported. After a batch, bytes are counted from its end.
    fn next_stop(&mut self) -> usize {
        usize::MAX
    }

    /// Is notified that memory for an object at a stop was reserved, before reserve returns it to its
    /// caller. The call of reserve is on the stack now, and no longer when the other
    /// methods are called. If this unwinds, nothing was reserved.
    fn reserved(&mut self, stop: Stop) {
        let _ = stop;
    }

    /// Is notified that an object at a stop was committed. This is called in the next slow
    /// path after the commit, at the latest when the allocation point is dropped; a stack
    /// pool may have taken the object back by then. It is not called for an object that was
    /// abandoned or whose commit failed.
    fn stopped(&mut self, stop: Stop) {
        let _ = stop;
    }

    /// Is notified that an object at a stop was not allocated: it was abandoned, or its commit
    /// failed, or only the objects of a batch before the stop were committed. `stop.size` is the
    /// number of bytes that were committed nevertheless. The stop stays where it is: bytes that were not
    /// allocated do not count (`design/ap.md` `.stop.withdraw`).
    fn withdrawn(&mut self, stop: Stop) {
        let _ = stop;
    }

    /// Is notified of what was called on the point, other than a reserve that was served, while this control has set a
    /// stop: frames ([`Event::PushFrame`], [`Event::PopFrame`]), reserves that were refused
    /// ([`Event::RefuseReserve`]), [`Event::EmptyPoint`] and [`Event::FreeAtPoint`]. Only controls that
    /// [observe calls](Control::OBSERVES_CALLS) are notified: at points with other controls, calls
    /// have not one instruction for it.
    fn called(&mut self, event: Event) {
        let _ = event;
    }

    /// Is notified that a call on the point begins that may need its pool, also the call that creates the point. Only
    /// controls that [observe calls](Control::OBSERVES_CALLS) are notified.
    fn begin_call(&mut self) {}

    /// Is notified that the call is over. The call that drops the point is over when this control is dropped.
    fn end_call(&mut self) {}

    /// Is notified that `requests` trips were requested since the last call. If this requested a trip
    /// of the same point, it would be called again, without end.
    fn tripped(&mut self, requests: usize) {
        let _ = requests;
    }

    /// Returns a new distance from here to the next stop (`usize::MAX` for no stop), or `None` to
    /// keep the present stop, which is `left` bytes away (`usize::MAX` if there is none). This
    /// is called after trips, so another thread requests a trip to have a control move its stop.
    fn move_stop(&mut self, left: usize) -> Option<usize> {
        let _ = left;
        None
    }
}

/// Sets no stops, and does nothing on a trip.
impl Control for () {
    const SETS_STOPS: bool = false;
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    fn batch(size: usize, count: usize, unit: usize) -> Stop {
        let (pool, buffer) = (PoolId::ARENA, Addr::new(64));
        let fill_size = 1024;
        Stop {
            pool,
            class: "Test",
            buffer,
            object: Addr::new(4096),
            size,
            count,
            unit,
            fill_size,
            offset: 0,
            requested: size,
            align: 4,
            type_name: Some("T"),
        }
    }

    #[test]
    fn a_batch_is_made_of_objects_the_last_of_which_has_the_rest() {
        let part = |stop: Stop, offset| {
            let part = stop.object_at(offset);
            assert_eq!((part.count, part.unit, part.type_name), (1, part.size, Some("T")));
            (part.object.get(), part.size, part.offset)
        };
        let three = batch(40, 3, 12);
        assert_eq!(
            [0, 11, 12].map(|offset| part(three, offset)),
            [(4096, 12, 0), (4096, 12, 11), (4108, 12, 0)]
        );
        assert_eq!(
            [24, 35, 39].map(|offset| part(three, offset)),
            [(4120, 16, 0), (4120, 16, 11), (4120, 16, 15)]
        );
        let one = batch(32, 1, 32);
        assert_eq!(one.object_at(7), Stop { offset: 7, ..one });
    }
}
