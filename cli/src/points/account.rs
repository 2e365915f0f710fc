//! What the buffers and the arena should have counted, worked out from the events of the log alone. Sums of a log that
//! was changed may wrap.

use rustc_hash::FxHashMap;
use tripoint::ArenaCounts;
use tripoint::packets::PacketRingCounts;
use tripoint_telemetry::reader::Fields;

/// Bytes that were filled and emptied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes {
    filled: u64,
    emptied: u64,
}

impl Bytes {
    pub(super) const fn new(filled: u64, emptied: u64) -> Self {
        Self { filled, emptied }
    }
}

/// The sums of a log.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Of each buffer that a point has, and whether that serves the program.
    buffers: FxHashMap<u64, (Bytes, bool)>,
    mutator: Bytes,
    internal: Bytes,
    fills: u64,
    trips: u64,
    /// Of each ring of packets, by the numbers of its pool and its own.
    rings: FxHashMap<(u64, u64), PacketRingCounts>,
}

impl Account {
    /// Adds an event of the log.
    pub(super) fn add(&mut self, fields: &Fields) {
        match *fields {
            Fields::CreatePoint { buffer, kind, .. } => {
                let is_mutator = kind.as_str() == Some("mutator");
                self.buffers.insert(buffer, (Bytes::default(), is_mutator));
            }
            Fields::DestroyPoint { buffer, .. } => _ = self.buffers.remove(&buffer),
            Fields::Fill { buffer, size, .. } => {
                self.fills += 1;
                self.each(buffer, |bytes| bytes.filled = bytes.filled.wrapping_add(size));
            }
            Fields::Empty { buffer, size, .. } => {
                self.each(buffer, |bytes| bytes.emptied = bytes.emptied.wrapping_add(size));
            }
            Fields::Trip { requests, .. } => self.trips = self.trips.wrapping_add(requests),
            Fields::DestroyPool { pool, .. } => self.rings.retain(|&(of, _), _| of != pool),
            Fields::PacketCall { pool, packet_ring: ring, moved, call, error, .. } if ring != 0 => {
                let counts = self.rings.entry((pool, ring)).or_default();
                let count = match call.as_str() {
                    _ if error.as_str() != Some("") => &mut counts.refused,
                    Some("fill") => &mut counts.filled,
                    Some("submit") => &mut counts.submitted,
                    Some("reclaim") => &mut counts.reclaimed,
                    _ => &mut counts.completed,
                };
                *count = count.wrapping_add(if error.as_str() == Some("") { moved } else { 1 });
            }
            _ => {}
        }
    }

    /// What a ring should have counted.
    pub(super) fn ring_of(&self, pool: u64, ring: u64) -> PacketRingCounts {
        self.rings.get(&(pool, ring)).copied().unwrap_or_default()
    }

    /// Adds to the sums of a buffer and to those of its kind.
    fn each(&mut self, buffer: u64, add: impl Fn(&mut Bytes)) {
        if let Some((bytes, is_mutator)) = self.buffers.get_mut(&buffer) {
            add(bytes);
            add(if *is_mutator { &mut self.mutator } else { &mut self.internal });
        }
    }

    /// What a buffer should have counted.
    pub(super) fn bytes_of(&self, buffer: u64) -> Bytes {
        self.buffers.get(&buffer).map_or_else(Bytes::default, |(bytes, _)| *bytes)
    }

    /// The counters of an arena that are not what they should be: name, sum of the log, counter.
    pub(super) fn differences(&self, counts: &ArenaCounts) -> Vec<(&'static str, u64, u64)> {
        let counters = [
            ("fill_mutator", self.mutator.filled, counts.fill_mutator.get()),
            ("empty_mutator", self.mutator.emptied, counts.empty_mutator.get()),
            ("fill_internal", self.internal.filled, counts.fill_internal.get()),
            ("empty_internal", self.internal.emptied, counts.empty_internal.get()),
            ("fills", self.fills, counts.fills.get()),
            ("trips", self.trips, counts.trips.get()),
        ];
        counters.into_iter().filter(|(_, log, counted)| log != counted).collect()
    }
}
