//! All of a recording but its events.

use serde::{Deserialize, Serialize};
use tripoint_telemetry::reader::{LoadedObject, Table};

use crate::source::counters::Counters;

/// A thread that recorded something.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Thread {
    /// The system's number of the thread that has or had the ring; zero for none.
    #[serde(rename = "tid")]
    pub(crate) thread: u64,
    /// Its name, with characters escaped that cannot be printed.
    pub(crate) name: String,
    /// Events that it ever wrote.
    pub(crate) events: u64,
    /// Events that it dropped, because its ring was in use.
    pub(crate) dropped: u64,
    /// The index of its ring.
    pub(crate) ring: usize,
    /// Whether no other thread ever had the ring.
    pub(crate) is_only: bool,
}

/// All of a recording but its events.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct End {
    pub(crate) counters: Counters,
    /// When they were read, in ns of the system's monotonic clock; none if that is not known.
    pub(crate) ns: Option<u64>,
    /// The program and its libraries.
    #[serde(with = "objects")]
    pub(crate) objects: Option<Table<LoadedObject>>,
    /// The threads of the rings that were written to.
    pub(crate) threads: Vec<Thread>,
    /// What the system did not let be seen, with what to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unseen: Vec<String>,
    /// How long the process was watched from outside, in ns; none if it recorded its events itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watched_ns: Option<u64>,
    /// Whether the process has closed it, and writes no more.
    pub(crate) is_closed: bool,
    /// Whether the process has ended without closing it. Captures of older versions do not say it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub(crate) is_gone: bool,
    /// Whether violations, alarms and phases have rings of their own, with gaps of their own. Captures of older versions do not
    /// say it.
    pub(crate) has_lasting_rings: bool,
}

/// The form of objects in a capture.
mod objects {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tripoint_telemetry::reader::{LoadedObject, Table};

    #[derive(Deserialize, Serialize)]
    struct Captured {
        /// Its bytes, because a path need not be UTF-8.
        path: Vec<u8>,
        is_path_cut: bool,
        build_id: Vec<u8>,
        base: u64,
        start: u64,
        end: u64,
    }

    pub(super) fn serialize<S: Serializer>(
        objects: &Option<Table<LoadedObject>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let captured = |object: &LoadedObject| Captured {
            path: object.path.as_os_str().as_bytes().to_vec(),
            is_path_cut: object.is_path_cut,
            build_id: object.build_id.clone(),
            base: object.base,
            start: object.start,
            end: object.end,
        };
        let table = objects.as_ref();
        let rows =
            table.map(|table| (table.left_out, table.entries.iter().map(captured).collect::<Vec<_>>()));
        rows.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Table<LoadedObject>>, D::Error> {
        let object = |captured: Captured| LoadedObject {
            path: OsString::from_vec(captured.path).into(),
            is_path_cut: captured.is_path_cut,
            build_id: captured.build_id,
            base: captured.base,
            start: captured.start,
            end: captured.end,
        };
        let rows = Option::<(u64, Vec<Captured>)>::deserialize(deserializer)?;
        let table = |(left_out, rows): (u64, Vec<Captured>)| Table {
            entries: rows.into_iter().map(object).collect(),
            left_out,
            unsteady: 0,
        };
        Ok(rows.map(table))
    }
}
