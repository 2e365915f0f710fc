//! Counters, in the form in which the reader of telemetry writes them as JSON.

use std::io;

use serde::{Deserialize, Serialize, Serializer};

use tripoint_telemetry::reader;

use crate::source::event::hexadecimal;

/// The entries of a table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Table<T> {
    pub(crate) entries: Vec<T>,
    /// How often no entry was left for something new.
    pub(crate) left_out: u64,
    /// How many entries changed whenever they were read, or made no sense.
    pub(crate) unsteady: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), left_out: 0, unsteady: 0 }
    }
}

/// All counters of a recording.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Counters {
    pub(crate) arenas: Table<Arena>,
    pub(crate) pools: Table<Pool>,
    /// Captures of older versions have none.
    #[serde(default)]
    pub(crate) extents: Table<Extent>,
    pub(crate) points: Table<Point>,
    pub(crate) phase: Table<Phase>,
    /// Captures of older versions have none.
    #[serde(default)]
    pub(crate) contract_threads: Table<ContractThread>,
    pub(crate) tallies: Table<Tally>,
    pub(crate) samples: Table<Samples>,
}

impl Counters {
    /// The counters that a reader has read.
    ///
    /// # Errors
    /// If they cannot be written as JSON, or are not read as they were written.
    pub(crate) fn of(read: &reader::Counters) -> io::Result<Self> {
        let mut text = String::new();
        read.write_json(&mut text).map_err(io::Error::other)?;
        Ok(serde_json::from_str(&text)?)
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Arena {
    pub(crate) is_live: bool,
    pub(crate) arena: u64,
    /// Its first address; zero if addresses are left out.
    #[serde(default, deserialize_with = "hexadecimal", serialize_with = "as_hexadecimal")]
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) grown: u64,
    pub(crate) shrunk: u64,
    pub(crate) refused: u64,
    pub(crate) pools_created: u64,
    pub(crate) pools_destroyed: u64,
    pub(crate) stops: u64,
    pub(crate) stops_postponed: u64,
    pub(crate) pauses: u64,
    pub(crate) collections: u64,
    pub(crate) freed: u64,
}

impl Arena {
    /// The bytes that it has committed.
    pub(crate) fn committed(&self) -> u64 {
        self.grown.saturating_sub(self.shrunk)
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Pool {
    pub(crate) is_live: bool,
    pub(crate) class: String,
    pub(crate) arena: u64,
    pub(crate) pool: u64,
    pub(crate) extended: u64,
    pub(crate) retracted: u64,
    pub(crate) fills: u64,
    pub(crate) filled: u64,
    pub(crate) empties: u64,
    pub(crate) emptied: u64,
    /// The bytes that it had when the program noted them last; zero before.
    pub(crate) total: u64,
    pub(crate) free: u64,
}

impl Pool {
    /// The bytes that it has from its arena.
    pub(crate) fn held(&self) -> u64 {
        self.extended.saturating_sub(self.retracted)
    }
}

/// Addresses that a pool has, and that follow each other.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Extent {
    pub(crate) arena: u64,
    pub(crate) pool: u64,
    #[serde(deserialize_with = "hexadecimal", serialize_with = "as_hexadecimal")]
    pub(crate) base: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Point {
    pub(crate) is_live: bool,
    pub(crate) arena: u64,
    pub(crate) pool: u64,
    #[serde(deserialize_with = "hexadecimal", serialize_with = "as_hexadecimal")]
    pub(crate) buffer: u64,
    pub(crate) fills: u64,
    pub(crate) filled: u64,
    pub(crate) empties: u64,
    pub(crate) emptied: u64,
    pub(crate) room: u64,
    pub(crate) trips: u64,
    pub(crate) flips: u64,
    pub(crate) commits_failed: u64,
    pub(crate) frames_pushed: u64,
    pub(crate) frames_popped: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Phase {
    pub(crate) phase: String,
    pub(crate) changes: u64,
    pub(crate) amnesties_begun: u64,
    pub(crate) amnesties_ended: u64,
}

/// A thread of the contract.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ContractThread {
    /// Whether the thread has not left.
    pub(crate) is_live: bool,
    pub(crate) name: String,
    /// The contract's place of the thread.
    #[serde(rename = "thread")]
    pub(crate) slot: u64,
    /// 1 for a hot one.
    is_hot: u64,
    /// 1 if it was ever armed.
    was_armed: u64,
    /// 1 if it left in the steady state or later and was never armed; 0 in older recordings.
    #[serde(default)]
    left_unarmed: u64,
    pub(crate) records_lost: u64,
    pub(crate) overlapped: u64,
    /// The classes that it is held to, the detectors that it asked for, and those that are live for it.
    pub(crate) held: Vec<String>,
    pub(crate) wanted: Vec<String>,
    pub(crate) live: Vec<String>,
}

impl ContractThread {
    pub(crate) fn is_hot(&self) -> bool {
        self.is_hot != 0
    }

    pub(crate) fn was_armed(&self) -> bool {
        self.was_armed != 0
    }

    /// Whether it is in the steady state and was not armed by now, or never will be.
    pub(crate) fn is_unarmed(&self) -> bool {
        self.left_unarmed != 0 || (self.is_live && !self.was_armed())
    }
}

/// What the contract counted of a thread and a class of events.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Tally {
    pub(crate) class: String,
    /// The contract's place of the thread.
    #[serde(rename = "thread")]
    pub(crate) slot: u64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) excused: u64,
    pub(crate) excused_bytes: u64,
    pub(crate) armed_count: u64,
    pub(crate) armed_bytes: u64,
    pub(crate) armed_excused: u64,
    pub(crate) armed_excused_bytes: u64,
}

/// What the samples of a pool add up to.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Samples {
    pub(crate) class: String,
    pub(crate) arena: u64,
    pub(crate) pool: u64,
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
    pub(crate) standard_error: u64,
}

fn as_hexadecimal<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:#x}"))
}
