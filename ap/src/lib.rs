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
//! **Reserve** tests whether the object ends at `limit` or below. **Commit** moves
//! `init` past the object, which declares it whole, and in flippable pools tests whether
//! `limit` is zero. A thread that wants control stores zero in `limit`: a **trip**. It
//! takes effect at the next reserve or, in flippable pools, at the commit of an object that is
//! reserved already.
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
//!   |   |           |       |  | 8 reserve: observe   |
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
//! | | transition | file, below `ap/src` |
//! |---|---|---|
//! | 1 | reset to busy | `slow/fill.rs`, `slow/slow_path.rs` |
//! | 2, 4 | the fast path | `reservation.rs` |
//! | 3 | the token is dropped: there is nothing to do, `init` never moved | |
//! | 5 | [`Tripper::trip`], [`Buffer::flip`] | `protocol/trip.rs`, `protocol/flip.rs` |
//! | 6, 7 | the cold half of commit | `protocol/flip.rs` |
//! | 8 | trips, then stops, then a full buffer | `slow/fill.rs`, `protocol/rearm.rs` |
//! | 9, 10 | back to reset | `slow/slow_path.rs`, `slow/fill.rs` |
//!
//! A buffer that is full while ready goes through reset to its next memory: the
//! slow path detaches, fills, attaches, and goes on.
//!
//! # Model-checking your own use of it
//!
//! Code that shares objects, trippers or controls between threads without a lock can be
//! checked with [loom](https://docs.rs/loom), which tries every interleaving. Built with
//! `--cfg tripoint_loom`, every atomic and lock of tripoint is loom's, so that your models run
//! the code that ships and not a mock of it:
//!
//! ```toml
//! [target.'cfg(tripoint_loom)'.dependencies]
//! loom = "0.7.2" # tripoint's version: one copy of loom has to see all atomics
//!
//! [lints.rust]
//! unexpected_cfgs = { level = "warn", check-cfg = ['cfg(tripoint_loom)'] }
//! ```
//! ```sh
//! RUSTFLAGS="--cfg tripoint_loom" cargo test --release
//! ```
//!
//! - Take your own atomics from one module, which uses `loom::sync::atomic` under this cfg.
//! - Create the arena, the pool and the allocation points inside `loom::model`, and do not use
//!   them outside: loom's atomics belong to one execution.
//! - Use a client arena, in memory of the same alignment in every execution. Loom knows no
//!   system calls, so the barriers of an arena with virtual memory are not modelled.
//! - Start threads by `loom::thread::spawn`. They need `'static`: leak what they share, or
//!   take it back after they are joined.
//! - Give each model a twin with a bug in it that must fail.
//!
//! The example `model_checked` in the repository is a crate with two such models. The cfg is
//! for tests only: outside `loom::model` every atomic panics.
//!
//! # Design
//!
//! [`design::ap`] and [`design::frames`] say why it is built so.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

mod alloc;
mod batch;
pub mod design;
mod frames;
mod free;
mod point;
mod protocol;
mod reservation;
mod slow;

pub use batch::Batch;
pub use frames::{Frame, FrameBox, Scope};
pub use point::AllocationPoint;
pub use protocol::buffer::Buffer;
pub use protocol::snapshot::{BufferMode, Readiness, Snapshot};
pub use protocol::trip::Tripper;
pub use reservation::{CommitFailed, Reservation};
pub use slow::descriptor::PoolBuffer;
pub use slow::walk::{flip_buffers, for_each_buffer};

/// For models, fuzz targets and tests of this workspace: not part of what the crate
/// promises.
#[doc(hidden)]
pub mod internal {
    pub use crate::protocol::buffer::buffer_without_pool;
    pub use crate::protocol::calc;
    pub use crate::protocol::owner::Owner;
}
