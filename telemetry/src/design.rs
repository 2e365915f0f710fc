#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/sampling.md")]
pub mod sampling {}

#[doc = include_str!("../design/telemetry.md")]
pub mod telemetry {}

#[doc = include_str!("../design/point-log.md")]
pub mod point_log {}
