//! Allocation points: reserve and commit in a few lock-free instructions.
//!
//! An [`AllocationPoint`] owns a [`Buffer`]: memory taken from a pool in advance,
//! and a descriptor with four addresses.
//!
//! ```text
//!   base            init             alloc           limit, pool limit
//!    |  whole objects |   reserved     |     free      |
//!    +----------------+----------------+---------------+
//!                      reserve moves -->
//!     commit moves -->
//! ```
//!
//! **Reserve** looks whether the object ends below `limit`; **commit** moves
//! `init` past it, which declares it whole, and in flippable pools looks whether
//! `limit` is zero. Whoever wants control stores zero in `limit`: a **trip**. It
//! shows at the next reserve or, in flippable pools, at the commit under way.
//!
//! | to allocate | use |
//! |---|---|
//! | one object | [`alloc`](AllocationPoint::alloc), [`boxed`](AllocationPoint::boxed) |
//! | many of one type in a row | [`batch`](AllocationPoint::batch) |
//! | until a closure returns, in a stack pool | [`scope`](AllocationPoint::scope) |
//! | raw memory, by hand | [`reserve`](AllocationPoint::reserve), [`push`](AllocationPoint::push), [`pop`](AllocationPoint::pop) |
//!
//! # States
//!
//! ```text
//!                     create
//!                       |
//!                       v               9 empty, drop
//!   +-------------->  RESET  <--------------------------------+
//!   |          base=init=alloc=limit=0                        |
//!   |                   |                                     |
//!   |                   | 1 reserve: fill, attach, re-arm     |
//!   |                   v                                     |
//!   |   +-----------  BUSY  <-------------------------+       |
//!   |   |        (a Reservation lives)                |       |
//!   |   |           |       |                         |       |
//!   |   | 3 drop    |       | 2 commit, limit /= 0    | 4 reserve fits
//!   |   | (abandon) |       v                         |       |
//!   |   +-----------|---> READY  ---------------------+-------+
//!   |   |           |       |  ^                      ^
//!   |   |           |       |  | 8 reserve: hear of   |
//!   |   |  5 limit  |       |  |   it, re-arm; the    |
//!   |   |    := 0   |       |  |   reservation begins |
//!   |   |           v       v  |                      |
//!   |   |        TRAPPED (limit = 0) -----------------+
//!   |   |         busy or ready; by a trip, or by
//!   |   |         a flip, which also makes it
//!   |   |        FLIPPED (init at flip /= 0)
//!   |   |              |
//!   |   |              | commit, while trapped:
//!   |   |              |  6 not flipped, or flipped and seen: stands
//!   |   |              |  7 flipped and not seen: init goes back, fails
//!   |   |              v
//!   |   +----- ready, and still trapped until 8
//!   |
//!   +-- 10 the buffer is full and the fill fails
//! ```
//!
//! | | transition | where |
//! |---|---|---|
//! | 1 | reset to busy | `fill.rs` |
//! | 2, 4 | the fast path | `point.rs`, `reservation.rs` |
//! | 3 | dropping the token: nothing to do, `init` never moved | |
//! | 5 | [`Tripper::trip`], [`Buffer::flip`] | `trip.rs`, `flip.rs` |
//! | 6, 7 | the cold half of commit | `flip.rs` |
//! | 8 | trips, then stops, then full | `fill.rs`, `trip.rs` |
//! | 9, 10 | back to reset | `fill.rs` |
//!
//! A buffer that is full while ready goes through reset to its next memory: the
//! slow path detaches, fills, attaches, and goes on.
//!
//! Design: [`design/ap.md`](crate::design::ap).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

mod alloc;
mod batch;
pub mod design;
mod frames;
mod point;
mod protocol;
mod reservation;
mod slow;

pub use batch::Batch;
pub use frames::{Frame, FrameBox, Scope};
pub use point::AllocationPoint;
pub use protocol::buffer::Buffer;
pub use protocol::snapshot::{BufferMode, Snapshot};
pub use protocol::trip::Tripper;
pub use reservation::{CommitFailed, Reservation};
pub use slow::control::{Control, Stop};
pub use slow::descriptor::PoolBuffer;
pub use slow::walk::{flip_buffers, for_each_buffer};

/// For models, fuzz targets and tests of this workspace: not part of what the crate
/// promises.
#[doc(hidden)]
pub mod internal {
    pub use crate::protocol::buffer::ApFields;
    pub use crate::protocol::calc;
    pub use crate::protocol::owner::Owner;
}
