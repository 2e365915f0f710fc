#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/pool-mfs.md")]
pub mod pool_mfs {}

#[doc = include_str!("../design/pool-mvff.md")]
pub mod pool_mvff {}

#[doc = include_str!("../design/pool-tlsf.md")]
pub mod pool_tlsf {}

#[doc = include_str!("../design/pool-mvt.md")]
pub mod pool_mvt {}

#[doc = include_str!("../design/pool-snc.md")]
pub mod pool_snc {}

#[doc = include_str!("../design/pool-null.md")]
pub mod pool_null {}

#[doc = include_str!("../design/cache.md")]
pub mod cache {}

#[doc = include_str!("../design/land.md")]
pub mod land {}

#[doc = include_str!("../design/debug.md")]
pub mod debug {}

#[doc = include_str!("../design/hardening.md")]
pub mod hardening {}

#[doc = include_str!("../design/conformance.md")]
pub mod conformance {}
