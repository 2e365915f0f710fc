//! A file of telemetry as the writer sees it: words, divided into header, tables and rings
//! ([design/telemetry.md `.layout`](crate::design::telemetry)).

#[cfg(not(tripoint_loom))]
pub(crate) mod image;
#[cfg(all(tripoint_on_linux, not(tripoint_loom)))]
pub(crate) mod objects;
#[cfg(not(tripoint_loom))]
pub(crate) mod plan;
#[cfg(not(tripoint_loom))]
pub(crate) mod switches;
pub(crate) mod table;
