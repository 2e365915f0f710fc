//! Sampling at allocation points and in stores.

pub(crate) mod countdown;
pub(crate) mod point_sampler;
pub(crate) mod sampled_object;
pub(crate) mod sampled_store;
pub(crate) mod sampling;

mod draws;
