//! Estimates of all that was allocated, made from samples, and how far they may be from the truth.

pub(crate) mod estimate;
pub(crate) mod groups;
pub(crate) mod interval;
pub(crate) mod negative_binomial;

mod binomial;
mod missed;
mod normal;
