#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/contract.md")]
pub mod contract {}

#[doc = include_str!("../design/odd-places.md")]
pub mod odd_places {}

#[doc = include_str!("../design/gates.md")]
pub mod gates {}
