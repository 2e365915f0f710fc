//! The first look at a log. A commit is in the log only after the point's next call, so that the replay has to know
//! beforehand what became of a reservation. And a log that is damaged anywhere is refused before anything is replayed.

use std::io::Read;

use rustc_hash::FxHashMap;
use tripoint_telemetry::reader::{Fields, RecordedEvent};
use tripoint_telemetry::{LogError, LogReader};

/// What became of the reservations of a log.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// The bytes that were committed of the reservation whose event has this number.
    committed: FxHashMap<u64, u64>,
    /// The number of events.
    pub(super) events: u64,
}

impl Fates {
    /// Reads a whole log.
    pub(super) fn read<R: Read>(mut log: LogReader<R>) -> Result<Self, LogError> {
        let (mut fates, mut reserved) = (Self::default(), FxHashMap::default());
        while let Some(RecordedEvent { serial, fields, .. }) = log.next_event()? {
            fates.events += 1;
            match fields {
                Fields::Reserve { buffer, .. } => _ = reserved.insert(buffer, serial),
                Fields::Commit { buffer, size, .. } => {
                    if let Some(reserve) = reserved.remove(&buffer) {
                        fates.committed.insert(reserve, size);
                    }
                }
                Fields::Abandon { buffer, .. } => _ = reserved.remove(&buffer),
                _ => {}
            }
        }
        Ok(fates)
    }

    /// The bytes that were committed of a reservation: none if it was abandoned, or if the log ends before.
    pub(super) fn committed(&self, reserve: u64) -> usize {
        self.committed.get(&reserve).map_or(0, |&size| size as usize)
    }
}
