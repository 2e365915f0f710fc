//! The choice of the bytes that are drawn.

pub(crate) mod geometric;
pub(crate) mod stream;
pub(crate) mod trials;

mod logarithm;
