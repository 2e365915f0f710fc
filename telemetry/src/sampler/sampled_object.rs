//! What samplers report.

#![forbid(unsafe_code)]

use tripoint_core::Addr;

use crate::sample::Sample;

/// A sampled object, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledObject {
    /// The address of the object. It may have been freed meanwhile.
    pub object: Addr,
    /// What estimates are made of. At an allocation point the size is the one that the pool
    /// rounded to; in a store it is the one that was asked for
    /// ([design/sampling.md `.bytes`](crate::design::sampling)).
    pub sample: Sample,
}
