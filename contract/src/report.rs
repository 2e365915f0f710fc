//! What cold threads learn: the report, the sentinel's warnings, and the micro gate.

pub(crate) mod findings;
#[cfg(feature = "symbols")]
pub(crate) mod frame;
#[cfg(feature = "std")]
pub(crate) mod gate;
mod group;
mod json;
pub(crate) mod outcome;
pub(crate) mod resolve;
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
pub(crate) mod sentinel;
pub(crate) mod sizing;
#[cfg(feature = "symbols")]
pub(crate) mod symbols;
mod text;
