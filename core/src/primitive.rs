//! The one place that names atomics, fences and locks.
//!
//! Every other file of the workspace imports them from here. So a build
//! with `--cfg tripoint_loom` or `--cfg tripoint_shuttle` replaces all of them with
//! those of a model checker or of a randomised scheduler, and the models in
//! `tests-loom` check the code that ships ([design/core.md](crate::design::overview)
//! `.primitive`).
//!
//! | file | |
//! |---|---|
//! | `aver` | what no caller can bring about |
//! | `defer` | work at the end of a block |
//! | `prefetch` | memory that will soon be needed |
//! | `update` | an atomic word that changes by a rule |
//! | `yielding` | how a thread that waits lets others run |
//! | `lock`, `lock_kind` | mutual exclusion, and its kinds |

// (design/bare-metal.md `.req.refuse`, `.target.cas`)
#[cfg(not(target_has_atomic = "ptr"))]
compile_error!(
    "tripoint needs compare-and-swap on words, which this target does not have: trips, flips and locks are made of it"
);

#[cfg(all(tripoint_loom, not(feature = "loom")))]
compile_error!("`--cfg tripoint_loom` needs the feature `loom`: `tripoint = { ..., features = [\"loom\"] }`");
#[cfg(all(tripoint_shuttle, not(feature = "shuttle")))]
compile_error!(
    "`--cfg tripoint_shuttle` needs the feature `shuttle`: `tripoint = { ..., features = [\"shuttle\"] }`"
);

pub(crate) mod aver;
pub(crate) mod defer;
pub(crate) mod lock;
pub(crate) mod lock_kind;
pub(crate) mod prefetch;
pub(crate) mod update;
pub(crate) mod yielding;

#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
use core::sync::atomic;
#[cfg(tripoint_loom)]
use loom::sync::atomic;
#[cfg(tripoint_shuttle)]
use shuttle::sync::atomic;

#[cfg(target_has_atomic = "64")]
pub use atomic::AtomicU64;
pub use atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence};

// No scheduler models compiler fences; the real one costs nothing there.
pub use core::sync::atomic::compiler_fence;
