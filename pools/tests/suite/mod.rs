//! What every pool class must do (design/conformance.md): one file, one promise.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod damage;
pub(crate) mod exhaustion;
pub(crate) mod frames;
pub(crate) mod handles;
pub(crate) mod layouts;
pub(crate) mod lives;
pub(crate) mod points;
pub(crate) mod refusals;
pub(crate) mod threads;
