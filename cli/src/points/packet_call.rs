//! A call on a pool of packets, and what it moves.

#![forbid(unsafe_code)]

use tripoint_telemetry::reader::Text;

/// A unit that a call moves, and where its data lie, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) number: u32,
    pub(super) start: u32,
    pub(super) length: u32,
}

/// A call on a pool of packets, as the log has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketCall {
    pub(super) name: Text,
    pub(super) ring: u64,
    pub(super) asked: u64,
    pub(super) length: u64,
    pub(super) trips: u64,
    pub(super) error: Text,
}
