//! Estimates of all that was allocated, made from samples, and how far they may be from the truth.
//!
//! | file | |
//! |---|---|
//! | `normal`, `binomial`, `negative_binomial` | the distributions |
//! | `estimate` | the sums over samples from which everything is estimated |
//! | `missed` | the bytes of the objects that were not sampled |
//! | `interval` | ranges that hold the truth with a stated probability |
//! | `groups` | estimates by place, type, size class, thread or pool |

pub(crate) mod estimate;
pub(crate) mod groups;
pub(crate) mod interval;
pub(crate) mod negative_binomial;

mod binomial;
mod missed;
mod normal;
