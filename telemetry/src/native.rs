//! What Linux says about time and threads. No refusal of these calls is an error: there is a substitute
//! for what is not known.

pub(crate) mod clock;
pub(crate) mod thread;
