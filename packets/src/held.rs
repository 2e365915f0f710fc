//! A unit with where its data lie.

#![forbid(unsafe_code)]

/// The number of a unit, and where in it the data lie.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) number: u32,
    pub(crate) start: u32,
    pub(crate) length: u32,
}
