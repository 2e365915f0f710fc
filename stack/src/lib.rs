//! Finds out where a thread is: a bounded call stack, walked without allocating.
//!
//! ```
//! use tripoint_stack::Site;
//!
//! let site = Site::here();
//! assert!(site.frames().len() <= Site::FRAMES);
//! // Without the feature `walker`, on systems other than Linux, and on 32-bit ARM, the site is unknown.
//! let is_walked = cfg!(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri))));
//! assert_eq!(site != Site::UNKNOWN, is_walked);
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | [`Site`], a plain value. Walks find nothing. `no_std` ([design/stack.md `.req.bare`](crate::design::stack)) |
//! | `walker` | walks on Linux, except on 32-bit ARM, with the unwinder that `std` links |
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
#[cfg(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri))))]
mod unwinder;
mod walk;

#[cfg(all(feature = "objects", target_os = "linux"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "objects", target_os = "linux"))))]
pub use objects::{LoadedObject, visit_objects};
pub use site::Site;
