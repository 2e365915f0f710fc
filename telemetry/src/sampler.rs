//! Sampling at allocation points.

pub(crate) mod point_sampler;
pub(crate) mod sampling;
