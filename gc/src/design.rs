#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/gc.md")]
pub mod gc {}

#[doc = include_str!("../design/gc-figures.md")]
pub mod gc_figures {}

#[doc = include_str!("../design/inspection.md")]
pub mod inspection {}

#[doc = include_str!("../design/gc-typed.md")]
pub mod gc_typed {}

#[doc = include_str!("../design/gc-steps.md")]
pub mod gc_steps {}

#[doc = include_str!("../design/gc-transforms.md")]
pub mod gc_transforms {}

#[doc = include_str!("../design/gc-generations.md")]
pub mod gc_generations {}
