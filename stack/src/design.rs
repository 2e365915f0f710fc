#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/stack.md")]
pub mod stack {}
