//! Sampling at allocation points, in stores, and of global allocators.
//!
//! | file | |
//! |---|---|
//! | `sampling` | the switch, with its mean and its seed |
//! | `draws` | the draws of one sampler, which a switch may change |
//! | `countdown` | how many bytes are left before the next byte drawn |
//! | `thread_draws` | the draws of one thread |
//! | `point_sampler` | samples at an allocation point |
//! | `sampled_store` | samples of a pool or a cache |
//! | `global_sampler` | samples of a global allocator, thread by thread |
//! | `sampled_allocator` | a global allocator whose objects are sampled |

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
