#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/packets.md")]
pub mod packets {}
