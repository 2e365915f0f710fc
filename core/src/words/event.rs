//! Events of the slow paths, told to whoever embeds the arena.

use crate::words::pool_id::PoolId;

/// Something a slow path did. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The arena committed memory it did not have before.
    Grow {
        /// Bytes newly committed.
        size: usize,
    },
    /// The arena gave committed memory back to the platform.
    Shrink {
        /// Bytes decommitted.
        size: usize,
    },
    /// A frozen arena refused to grow.
    GrowthRefused {
        /// Bytes that were asked for.
        size: usize,
    },
    /// A buffer was filled.
    Fill {
        /// The pool that gave the memory.
        pool: PoolId,
        /// Bytes given.
        size: usize,
    },
    /// A buffer gave back what it did not use.
    Empty {
        /// The pool that got the memory.
        pool: PoolId,
        /// Bytes given back.
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

/// Somebody who wants to know of [`Event`]s.
///
/// Called on the thread that ran the slow path, sometimes with a pool's lock held:
/// an implementation must not call any pool of the arena it listens to, not even
/// to look, and should return soon.
///
/// A hook should not unwind. If one does, the buffer's step that it was told of (a fill,
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
    /// Tells of one event.
    fn event(&self, event: Event);
}
