//! Which bytes are drawn.

pub(crate) mod geometric;
pub(crate) mod stream;
pub(crate) mod trials;

mod logarithm;
