//! Finds out where a thread is: a bounded call stack, walked without allocating.
//!
//! ```
//! use tripoint_stack::{FRAMES, Site};
//!
//! let site = Site::here();
//! assert!(site.frames().len() <= FRAMES);
//! // Without the feature `walker`, and on systems other than Linux, the site is unknown.
//! assert_eq!(site == Site::UNKNOWN, cfg!(not(all(feature = "walker", target_os = "linux", not(miri)))));
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | [`Site`], a plain value. Walks find nothing. `no_std` ([design/stack.md `.req.bare`](crate::design::stack)) |
//! | `walker` | walks on Linux, with the unwinder that `std` links |
//! | `objects` | `visit_objects`: the program and the libraries that are loaded, on Linux |
//!
//! Design: [`design/stack.md`](crate::design::stack).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

pub mod design;
#[cfg(all(feature = "objects", target_os = "linux"))]
mod objects;
mod site;
#[cfg(all(feature = "walker", target_os = "linux", not(miri)))]
mod unwinder;
mod walk;

#[cfg(all(feature = "objects", target_os = "linux"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "objects", target_os = "linux"))))]
pub use objects::{LoadedObject, visit_objects};
pub use site::{FRAMES, Site};
