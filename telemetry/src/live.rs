//! Sampled objects that are not freed yet: an estimate of what is in use.

/// An array of words, and a function that makes a structure of such. Both are made at compile time,
/// except under loom, whose atomics are not.
#[cfg(not(tripoint_loom))]
macro_rules! words {
    ($(#[$about:meta])* $visible:vis fn new() -> Self $body:block) => {
        $(#[$about])*
        #[must_use]
        $visible const fn new() -> Self $body
    };
    ($word:expr; $size:expr) => {
        [const { $word }; $size]
    };
}
#[cfg(tripoint_loom)]
macro_rules! words {
    ($(#[$about:meta])* $visible:vis fn new() -> Self $body:block) => {
        $(#[$about])*
        #[must_use]
        $visible fn new() -> Self $body
    };
    ($word:expr; $size:expr) => {
        core::array::from_fn(|_| $word)
    };
}

pub(crate) mod entry;
pub(crate) mod live_samples;
pub(crate) mod remember;
