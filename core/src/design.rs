#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/core.md")]
pub mod overview {}

#[doc = include_str!("../design/arena.md")]
pub mod arena {}

#[doc = include_str!("../design/glossary.md")]
pub mod glossary {}
