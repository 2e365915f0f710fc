//! Events of the slow paths, for the program that owns the arena.

use crate::words::pool_id::PoolId;

/// Something a slow path did. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The arena committed memory it did not have before.
    Grow {
        /// The bytes that were committed.
        size: usize,
    },
    /// The arena returned committed memory to the platform.
    Shrink {
        /// The bytes that were decommitted.
        size: usize,
    },
    /// A frozen arena refused to grow.
    GrowthRefused {
        /// The bytes that were asked for.
        size: usize,
    },
    /// A buffer was filled.
    Fill {
        /// The pool that the memory is from.
        pool: PoolId,
        /// The bytes of the fill.
        size: usize,
    },
    /// A buffer returned what it did not use.
    Empty {
        /// The pool that the memory was returned to.
        pool: PoolId,
        /// The bytes that were returned.
        size: usize,
    },
    /// The owner of a buffer handled one or more trips.
    Trip {
        /// The pool of the buffer.
        pool: PoolId,
    },
    /// A buffer was flipped.
    Flip {
        /// The pool of the buffer.
        pool: PoolId,
    },
    /// A commit failed because a flip had not seen the object.
    CommitFailed {
        /// The pool of the buffer.
        pool: PoolId,
    },
}

/// A hook that observes [`Event`]s.
///
/// It is called on the thread that runs the slow path, sometimes while a pool is locked. So
/// it must not call any pool of the arena that it observes, not even to read sizes, and should
/// return soon.
///
/// A hook should not unwind. If one does, the step of the buffer that it observes (a fill,
/// an empty, a trip, a flip, or a failed commit) was already done and counted.
///
/// ```
/// use tripoint_core::{Counter, Event, EventHook};
///
/// struct Growth(Counter);
///
/// impl EventHook for Growth {
///     fn event(&self, event: Event) {
///         if let Event::Grow { size } = event {
///             self.0.add(size as u64);
///         }
///     }
/// }
///
/// let growth = Growth(Counter::new());
/// growth.event(Event::Grow { size: 4096 }); // an arena's call
/// assert_eq!(growth.0.get(), 4096);
/// ```
pub trait EventHook: Sync {
    /// Observes one event.
    fn event(&self, event: Event);
}
