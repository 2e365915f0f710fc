#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/adaptors.md")]
pub mod adaptors {}
