//! The sizes of the parts of a file, and their places.

#![forbid(unsafe_code)]

use crate::format::{
    BLOCK_WORDS, HEADER_WORDS, MAX_ENTRIES, MAX_OBJECTS, MAX_RING_BYTES, MAX_RINGS, MAX_TALLY_CLASSES,
    MAX_TALLY_THREADS, OBJECT_WORDS, PAGE_WORDS, RING_HEAD_WORDS, SWITCHES_WORDS, SectionKind,
    TABLE_ENTRY_WORDS, TALLY_NUMBERS, TALLY_THREAD_WORDS, TallyWord, WORD_BYTES,
};

/// How much telemetry has room for. All memory is set aside at the beginning, and nothing grows later:
/// what finds no room is left out and counted. [`bytes`](Room::bytes) says how much memory that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Threads with a ring of their own, at most 4,095. All other threads share one more ring. 64 by
    /// default, more than most programs have cores for.
    pub threads: usize,
    /// The bytes of records in each ring, rounded up to a number of blocks of 4 KiB that is a power of two, and at
    /// least two; at most 512 MiB, because with its head it is no larger than
    /// [`MAX_RING_BYTES`](crate::format::MAX_RING_BYTES). 64 KiB by default, for the last thousand events of each
    /// thread.
    pub ring_bytes: usize,
    /// The bytes of records in a second ring of each thread, for events that last: violations, alarms and phases. No other
    /// event overwrites them. It is rounded up in the same way; 8 KiB by default,
    /// for the last 14 violations of each thread at least. With 0 there is no second ring, and these events are written
    /// to the first one.
    pub lasting_bytes: usize,
    /// Arenas whose counters are kept, at most 65,536. 16 by default. This number and the following ones are
    /// rounded up to a power of two.
    pub arenas: usize,
    /// Pools whose counters are kept, and sums of samples (of at most 32,768 pools). The samples of all others are
    /// added up in one more entry. 256 by default.
    pub pools: usize,
    /// Extents whose addresses are kept, none or up to 65,536: ranges of addresses of all pools together, for maps of
    /// memory. A pool with an extent for which there is no room has none. 1,024 by default: 128 KiB.
    pub extents: usize,
    /// Allocation points and other buffers whose counters are kept. 1,024 by default: 128 KiB.
    pub points: usize,
    /// Heaps of automatic pools whose counters are kept, none or up to 65,536. 16 by default. It is rounded up to a power of
    /// two.
    pub heaps: usize,
    /// Objects that are loaded, the program and its libraries, at most 1,024. 64 by default: 32 KiB. This number
    /// and the next one are not rounded up.
    pub objects: usize,
    /// Threads of the steady-state contract whose tallies are kept, at most 4,096: the number of places of the
    /// `Contract`, which refuses fewer. 8 by default, as there. With 0 nothing of the contract but its events is kept.
    pub tallies: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            threads: 64,
            ring_bytes: 64 << 10,
            lasting_bytes: 8 << 10,
            arenas: 16,
            pools: 256,
            extents: 1024,
            points: 1024,
            heaps: 16,
            objects: 64,
            tallies: 8,
        }
    }
}

impl Room {
    /// The least room, for targets with little memory: one ring that all threads share, one entry in
    /// each table of counters, none for extents, heaps and objects, no lasting rings and no tallies.
    pub const LEAST: Self = Self {
        threads: 0,
        ring_bytes: 0,
        lasting_bytes: 0,
        arenas: 1,
        pools: 1,
        extents: 0,
        points: 1,
        heaps: 0,
        objects: 0,
        tallies: 0,
    };

    /// The bytes of memory that this room takes, including the page of switches; `None` if it is more than
    /// the format allows, or takes more bytes than there are addresses.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        Plan::new(self)?.words.checked_add(SWITCHES_WORDS)?.checked_mul(WORD_BYTES)
    }
}

/// Where a section lies, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    pub(crate) start: usize,
    pub(crate) entries: usize,
    pub(crate) entry_words: usize,
}

impl Section {
    /// The words of all entries.
    pub(crate) const fn words(&self) -> usize {
        self.entries * self.entry_words
    }
}

/// How many sections the writer makes.
pub(crate) const SECTIONS: usize = 11;

/// Where everything lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) sections: [Section; SECTIONS],
    /// The words of the file: whole pages.
    pub(crate) words: usize,
}

impl Plan {
    /// The plan for this room; `None` if it takes more than the format or the addresses allow.
    pub(crate) fn new(room: &Room) -> Option<Self> {
        let table =
            |entries: usize| entries.checked_next_power_of_two().filter(|&entries| entries <= MAX_ENTRIES);
        if room.threads >= MAX_RINGS || room.objects > MAX_OBJECTS {
            return None;
        }
        let table_or_none = |entries: usize| if entries == 0 { Some(0) } else { table(entries) };
        let rings = room.threads.checked_add(1)?;
        let lasting_rings = if room.lasting_bytes == 0 { 0 } else { rings };
        let sizes = [
            (SectionKind::Arenas, table(room.arenas)?, TABLE_ENTRY_WORDS),
            (SectionKind::Pools, table(room.pools)?, TABLE_ENTRY_WORDS),
            (SectionKind::Points, table(room.points)?, TABLE_ENTRY_WORDS),
            (SectionKind::Phase, 1, TABLE_ENTRY_WORDS),
            (SectionKind::Tallies, 1, tally_words(room.tallies)?),
            // The first entry is for pools that find none.
            (SectionKind::Samples, 1 + table(room.pools.min(MAX_ENTRIES / 2))?, TABLE_ENTRY_WORDS),
            (SectionKind::Objects, room.objects, OBJECT_WORDS),
            (SectionKind::Heaps, table_or_none(room.heaps)?, TABLE_ENTRY_WORDS),
            (SectionKind::Extents, table_or_none(room.extents)?, TABLE_ENTRY_WORDS),
            (SectionKind::LastingRings, lasting_rings, ring_words(room.lasting_bytes)?),
            (SectionKind::Rings, rings, ring_words(room.ring_bytes)?),
        ];
        let mut words = HEADER_WORDS;
        let empty = Section { kind: SectionKind::Arenas, start: 0, entries: 0, entry_words: 0 };
        let mut sections = [empty; SECTIONS];
        for (section, (kind, entries, entry_words)) in sections.iter_mut().zip(sizes) {
            *section = Section { kind, start: words, entries, entry_words };
            let end = words.checked_add(entries.checked_mul(entry_words)?)?;
            words = end.checked_next_multiple_of(PAGE_WORDS)?;
        }
        Some(Self { sections, words })
    }
}

/// The words of a ring for this many bytes of records.
fn ring_words(bytes: usize) -> Option<usize> {
    let blocks = bytes.div_ceil(BLOCK_WORDS * WORD_BYTES).max(2).checked_next_power_of_two()?;
    let words = blocks.checked_mul(BLOCK_WORDS)?.checked_add(RING_HEAD_WORDS)?;
    // No reader would read a larger one.
    (words.checked_mul(WORD_BYTES)? as u64 <= MAX_RING_BYTES).then_some(words)
}

/// The words of the tallies of this many threads.
fn tally_words(threads: usize) -> Option<usize> {
    let threads = Some(threads).filter(|&threads| threads <= MAX_TALLY_THREADS)?;
    Some(TallyWord::Threads as usize + threads * (TALLY_THREAD_WORDS + MAX_TALLY_CLASSES * TALLY_NUMBERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_lie_one_after_another_on_pages() {
        let little = Room { threads: 3, pools: 5, lasting_bytes: 1, extents: 3, ..Room::LEAST };
        for room in [Room::LEAST, Room::default(), little] {
            let plan = Plan::new(&room).unwrap();
            let mut end = HEADER_WORDS;
            for section in plan.sections {
                assert!(section.start >= end && section.start % PAGE_WORDS == 0);
                end = section.start + section.words();
            }
            assert_eq!(plan.words, end.next_multiple_of(PAGE_WORDS));
            assert_eq!(room.bytes(), Some((plan.words + SWITCHES_WORDS) * 8));
        }
        assert_eq!(Room::LEAST.bytes(), Some(44 << 10));
        // As many bytes as readers read of a ring.
        let largest =
            Plan::new(&Room { ring_bytes: 512 << 20, ..Room::LEAST }).unwrap().sections[SECTIONS - 1];
        assert!(((512 << 20) + 1..=MAX_RING_BYTES).contains(&((largest.entry_words * WORD_BYTES) as u64)));
        assert_eq!(Plan::new(&Room { pools: 5, ..Room::LEAST }).unwrap().sections[1].entries, 8);
    }

    #[test]
    fn more_than_there_are_addresses_is_refused() {
        for room in [
            Room { threads: usize::MAX, ..Room::LEAST },
            Room { threads: MAX_RINGS, ..Room::LEAST },
            Room { points: MAX_ENTRIES + 1, ..Room::LEAST },
            Room { objects: MAX_OBJECTS + 1, ..Room::LEAST },
            Room { ring_bytes: usize::MAX, ..Room::default() },
            Room { ring_bytes: (512 << 20) + 1, ..Room::LEAST },
            Room { lasting_bytes: (512 << 20) + 1, ..Room::LEAST },
            Room { extents: MAX_ENTRIES + 1, ..Room::LEAST },
            Room { points: usize::MAX / 8, ..Room::LEAST },
            Room { tallies: MAX_TALLY_THREADS + 1, ..Room::LEAST },
        ] {
            assert_eq!(room.bytes(), None);
        }
    }
}
