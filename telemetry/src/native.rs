//! What Linux tells about time and threads. None of these calls can be refused: what is not known has a
//! substitute.

pub(crate) mod clock;
pub(crate) mod thread;
