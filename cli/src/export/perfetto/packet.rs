//! The messages of a trace of Perfetto, as far as they are written
//! (<https://github.com/google/perfetto/blob/main/protos/perfetto/trace/trace.proto>).

use prost::Message;

/// A part of a trace.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Packet {
    /// In ns.
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    /// Who writes. All packets of a time line have the same.
    #[prost(uint32, tag = "10")]
    pub(super) sequence: u32,
    #[prost(message, optional, tag = "11")]
    pub(super) event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    pub(super) track: Option<Track>,
}

/// A row of the time line.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Track {
    #[prost(uint64, tag = "1")]
    pub(super) uuid: u64,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<Process>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<Thread>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<Counter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Process {
    #[prost(int32, tag = "1")]
    pub(super) pid: i32,
    #[prost(string, tag = "6")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Thread {
    #[prost(int32, tag = "1")]
    pub(super) pid: i32,
    #[prost(int64, tag = "2")]
    pub(super) tid: i64,
    #[prost(string, tag = "5")]
    pub(super) name: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Counter {
    /// See [`Self::BYTES`].
    #[prost(int32, tag = "3")]
    pub(super) unit: i32,
}

impl Counter {
    pub(super) const BYTES: i32 = 3;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
pub(super) enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) annotations: Vec<Annotation>,
    /// A number that is required would be left out if it is the first of the enumeration.
    #[prost(enumeration = "Kind", optional, tag = "9")]
    pub(super) kind: Option<i32>,
    #[prost(uint64, tag = "11")]
    pub(super) track: u64,
    /// The name; an end has none.
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(super) counter: Option<i64>,
}

/// A value that viewers show beside an event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Annotation {
    #[prost(string, tag = "10")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "3, 6, 7")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(uint64, tag = "3")]
    Number(u64),
    #[prost(string, tag = "6")]
    Text(String),
    /// Shown in hexadecimal.
    #[prost(uint64, tag = "7")]
    Handle(u64),
}
