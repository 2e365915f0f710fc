#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/gc.md")]
pub mod gc {}
