#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/xdp.md")]
pub mod xdp {}
