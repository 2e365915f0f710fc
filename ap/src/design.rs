#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/ap.md")]
pub mod ap {}

#[doc = include_str!("../design/frames.md")]
pub mod frames {}
