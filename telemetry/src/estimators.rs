//! What samples say of all that was allocated, and how far that may be from the truth.

pub(crate) mod estimate;
pub(crate) mod groups;
pub(crate) mod interval;
pub(crate) mod negative_binomial;

mod binomial;
mod normal;
