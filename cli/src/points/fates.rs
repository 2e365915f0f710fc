//! The first look at a log. A commit is in the log only after the point's next call, so that the replay has to know
//! beforehand what became of a reservation. And a log that is damaged anywhere is refused before anything is replayed.

use std::io::Read;

use rustc_hash::FxHashMap;
use tripoint_telemetry::reader::{Fields, RecordedEvent};
use tripoint_telemetry::{LogError, LogReader};

use super::heap_pool;
use super::seen::is_of_heap;

/// What became of the reservations of a log.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// The bytes that were committed of the reservation whose event has this number, if these are not all.
    partly: FxHashMap<u64, u64>,
    /// The number of events.
    pub(super) events: u64,
    /// Whether the log has no end.
    pub(super) is_cut: bool,
    /// Whether there is a heap.
    pub(super) has_heap: bool,
}

impl Fates {
    /// Reads a whole log, or one without an end that has the event `until` and all before it.
    pub(super) fn read<R: Read>(mut log: LogReader<R>, until: u64) -> Result<Self, LogError> {
        // The last reservation of each buffer: its event, and its size.
        let (mut fates, mut reserved) = (Self::default(), FxHashMap::default());
        loop {
            let RecordedEvent { serial, fields, .. } = match log.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(LogError::Truncated { event }) if event > until => {
                    fates.is_cut = true;
                    break;
                }
                Err(error) => return Err(error),
            };
            fates.events += 1;
            fates.has_heap |= fields.kind().is_some_and(is_of_heap);
            match fields {
                Fields::CreatePool { class, .. } => {
                    fates.has_heap |= class.as_str().is_some_and(heap_pool::is_of_heap);
                }
                Fields::Reserve { buffer, size, .. } => {
                    fates.settle(reserved.insert(buffer, (serial, size)), 0);
                }
                Fields::Commit { buffer, size, .. } => fates.settle(reserved.remove(&buffer), size),
                Fields::Abandon { buffer, .. } => fates.settle(reserved.remove(&buffer), 0),
                _ => {}
            }
        }
        // Of a log without an end it is not known what became of the last ones: most reservations are committed.
        if !fates.is_cut {
            reserved.into_values().for_each(|reserved| fates.settle(Some(reserved), 0));
        }
        Ok(fates)
    }

    /// Remembers that this number of bytes was committed of a reservation, if there was one.
    fn settle(&mut self, reserved: Option<(u64, u64)>, committed: u64) {
        if let Some((event, _)) = reserved.filter(|(_, size)| *size != committed) {
            self.partly.insert(event, committed);
        }
    }

    /// The bytes that were committed of a reservation of this size: none if it was abandoned, or if the log ends before.
    pub(super) fn committed(&self, reserve: u64, size: u64) -> usize {
        *self.partly.get(&reserve).unwrap_or(&size) as usize
    }
}
