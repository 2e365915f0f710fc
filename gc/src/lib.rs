//! Heaps whose threads can be stopped at their allocation points, without signals: the ground
//! that collectors stand on.
//!
//! # What there is, and what there is not
//!
//! There is the stop, whole: a [`Heap`] with [`Mutator`]s that give way, and pools that join in by
//! two methods of their class. **There is no collector yet**, and no automatic pool class, format
//! or root. What is done to a stopped heap is up to the program.
//! [`design::gc`] says what is planned and in which order.
//!
//! # Stops
//!
//! A **mutator** is a thread's registration with a heap. While its thread uses objects of the heap it
//! is *running*. A thread that wants all others out of the way **stops** the heap. It then has
//! the heap to itself until it drops the [`Stopped`] guard. A running mutator gives way
//!
//! | where | by |
//! |---|---|
//! | in the slow path of reserve, to which a stop trips every allocation point | the pool's class |
//! | in a loop that does not allocate | [`Mutator::poll`], a load and a branch |
//! | in a call that may block, or lasts | [`Mutator::away`], during which it delays no stop |
//!
//! and never between a reserve and the commit of the same point. If a mutator does none of these in
//! the time that the stop allows, the stop is [`Postponed`]: all go on, and the error says which mutator
//! it was and where it was last seen.
//!
//! ```
//! use std::time::Duration;
//! use tripoint_core::{ClientArena, ClientArenaOptions};
//! use tripoint_gc::{Heap, HeapOptions, Postponed};
//!
//! let mut memory = Box::new_uninit_slice(64 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let heap = Heap::create(&arena, HeapOptions::default())?;
//! let mut mutator = heap.register()?;
//!
//! // This mutator runs, so the heap does not stop for another thread.
//! let postponed = std::thread::scope(|scope| {
//!     scope.spawn(|| heap.stop(Duration::from_micros(10)).map(drop)).join().unwrap()
//! });
//! assert!(matches!(postponed, Err(Postponed::Late(late)) if late.number == mutator.number()));
//!
//! // While it is away, the heap stops at once.
//! let stops = mutator.away(|| heap.stop(Duration::ZERO).map(|stopped| stopped.heap().counts().stops.get()));
//! assert_eq!(stops, Ok(1));
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! # For authors of pool classes
//!
//! A class whose points give way says [`PoolClass::GIVES_WAY`](tripoint_core::PoolClass::GIVES_WAY),
//! has a [`MutatorBuffer`] as its buffer class, asks [`Heap::wants_stop`], and answers by
//! [`Heap::give_way`]. The thread that stops the heap trips the points of each pool
//! ([`PoolHeader::trip_points`](tripoint_core::PoolHeader::trip_points)).
//!
//! Design: [`design::gc`].
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

pub mod design;
mod stops;

pub use stops::heap::{Heap, HeapCounts, HeapOptions};
pub use stops::mutator::Mutator;
pub use stops::mutator_buffer::MutatorBuffer;
pub use stops::postponed::{Late, Postponed};
pub use stops::stopped::Stopped;

/// For models and tests of this workspace: not part of what the crate promises.
#[doc(hidden)]
pub mod internal {
    pub use crate::stops::attendance::{Attendance, Place, Waiting};
    pub use crate::stops::stop_word::StopWord;
}
