//! A file of telemetry as the writer sees it: words, divided into header, tables and rings
//! ([design/telemetry.md `.layout`](crate::design::telemetry)).

pub(crate) mod image;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) mod objects;
pub(crate) mod plan;
pub(crate) mod switches;
pub(crate) mod table;
