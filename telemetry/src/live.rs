//! Sampled objects that are not freed yet: an estimate of what is in use.

mod entry;
pub(crate) mod live_samples;
pub(crate) mod remember;
