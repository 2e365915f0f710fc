//! Sampling at allocation points, in stores, and of global allocators.

pub(crate) mod countdown;
#[cfg(feature = "std")]
pub(crate) mod global_sampler;
pub(crate) mod point_sampler;
#[cfg(feature = "std")]
pub(crate) mod sampled_allocator;
pub(crate) mod sampled_store;
pub(crate) mod sampling;

mod draws;
#[cfg(feature = "std")]
mod thread_draws;
