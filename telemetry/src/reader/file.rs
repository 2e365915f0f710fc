//! An open telemetry file ([design/telemetry.md `.reader`](crate::design::telemetry)).

use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::io;
use std::time::SystemTime;
use std::vec::Vec;

use crate::format::{FileState, HeaderFlags, HeaderWord, RING_HEAD_WORDS, SectionKind, WORD_BYTES};
use crate::reader::clock::Clock;
use crate::reader::merge::Events;
use crate::reader::ring::{RingCursor, RingInfo, RingPlace, Start};
use crate::reader::words::{Words, word};

/// The bytes of a word.
pub(super) const WORD: u64 = WORD_BYTES as u64;

/// A part of a file that cannot be read, although the rest can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The index of the section in the table.
    pub section: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section {}: {}", self.section, self.what)
    }
}

/// What the header of a file says. Only [`process`](Self::process) and the
/// [`version`](Self::version) mean the same in all versions.
#[derive(Clone, Copy, Debug)]
pub struct FileInfo {
    /// The version of the format.
    pub version: u64,
    /// The process that writes, as it sees its own number; zero if there is none.
    pub process: u64,
    /// The bytes of the file.
    pub bytes: u64,
    /// The bytes of a pointer of the process.
    pub pointer_bytes: u64,
    /// How the file is kept.
    pub flags: HeaderFlags,
    /// A number that this file has and no other, except its switches; zero if it has none.
    pub identity: u64,
    pub(super) clock: Clock,
}

impl FileInfo {
    /// The time of day at a time in ns of the system's monotonic clock, if the file says it.
    #[must_use]
    pub fn time_of_day(&self, nanoseconds: u64) -> Option<SystemTime> {
        self.clock.unix(nanoseconds).and_then(time_of_day)
    }

    /// The time at which the file was made, if it says so.
    #[must_use]
    pub fn made(&self) -> Option<SystemTime> {
        self.clock.unix_of_anchor().and_then(time_of_day)
    }
}

fn time_of_day(since_1970: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(since_1970))
}

/// A part of a file: entries of one size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Section {
    pub(super) offset: u64,
    /// How many entries can be read.
    pub(super) entries: usize,
    pub(super) entry_bytes: u64,
    /// The word in the file that counts what found no entry.
    pub(super) left_out_at: Option<u64>,
}

impl Section {
    pub(super) fn entry(&self, index: usize) -> u64 {
        self.offset + index as u64 * self.entry_bytes
    }
}

/// Reads a telemetry file of another process, while that process writes or afterwards.
///
/// A reader trusts nothing that it reads, and holds nothing that the writer could wait for. It reads files
/// with system calls and maps nothing, so a file that becomes shorter meanwhile causes an error and not
/// a signal.
pub struct Reader {
    pub(super) words: Box<dyn Words + Send + Sync>,
    pub(super) info: FileInfo,
    /// The sections by kind, whose numbers begin with one.
    pub(super) sections: [Section; SECTIONS],
    pub(super) damage: Vec<Damage>,
}

/// The number of kinds of sections.
pub(super) const SECTIONS: usize = SectionKind::Extents as usize;

impl Reader {
    /// What the header says.
    #[must_use]
    pub const fn info(&self) -> &FileInfo {
        &self.info
    }

    /// The parts of the file that cannot be read.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Whether the process may still write. The file of a process that was killed stays open, so this
    /// does not show that the process has ended.
    ///
    /// # Errors
    /// If the file cannot be read any more.
    pub fn state(&self) -> io::Result<FileState> {
        let state = word(self.words(), HeaderWord::State as u64 * WORD)?;
        let states = [FileState::Making, FileState::Closed];
        Ok(states.into_iter().find(|&known| known as u64 == state).unwrap_or(FileState::Open))
    }

    /// The number of threads that may have rings of their own, and one more for all others.
    #[must_use]
    pub const fn rings(&self) -> usize {
        self.sections[SectionKind::Rings as usize - 1].entries
    }

    /// What the heads of a thread's rings say; `None` if there are no such rings.
    ///
    /// # Errors
    /// If the file cannot be read any more.
    pub fn ring(&self, ring: usize) -> io::Result<Option<RingInfo>> {
        let lasting = self.ring_place(SectionKind::LastingRings, ring);
        let recent = self.ring_place(SectionKind::Rings, ring);
        recent.map(|recent| RingInfo::read(&recent, lasting.as_ref())).transpose()
    }

    /// The events of a thread's first ring, which has all that does not last; `None` if there is no such ring.
    #[must_use]
    pub fn ring_events(&self, ring: usize, start: Start) -> Option<RingCursor<'_>> {
        self.cursor(SectionKind::Rings, ring, start)
    }

    /// The events of a thread's second ring, which frequent events do not overwrite: violations, alarms and phases; `None` if
    /// there is no such ring. If the writer had no room for second rings, these events are in the first.
    #[must_use]
    pub fn lasting_events(&self, ring: usize, start: Start) -> Option<RingCursor<'_>> {
        self.cursor(SectionKind::LastingRings, ring, start)
    }

    fn cursor(&self, kind: SectionKind, ring: usize, start: Start) -> Option<RingCursor<'_>> {
        Some(RingCursor::new(self.ring_place(kind, ring)?, &self.info.clock, start))
    }

    /// The events of all rings.
    #[must_use]
    pub fn events(&self, start: Start) -> Events<'_> {
        let all = 0..self.section(SectionKind::LastingRings).entries.max(self.rings());
        let lasting = all.clone().filter_map(|ring| self.lasting_events(ring, start));
        Events::new(lasting, all.filter_map(|ring| self.ring_events(ring, start)))
    }

    fn ring_place(&self, kind: SectionKind, ring: usize) -> Option<RingPlace<'_>> {
        let rings = self.section(kind);
        let head = RING_HEAD_WORDS as u64 * WORD;
        (ring < rings.entries).then(|| RingPlace {
            ring,
            is_lasting: kind == SectionKind::LastingRings,
            words: self.words(),
            offset: rings.entry(ring),
            capacity: (rings.entry_bytes - head) / WORD,
        })
    }

    pub(super) fn words(&self) -> &dyn Words {
        &*self.words
    }

    pub(super) fn section(&self, kind: SectionKind) -> &Section {
        &self.sections[kind as usize - 1]
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("info", &self.info)
            .field("sections", &self.sections)
            .field("damage", &self.damage)
            .finish_non_exhaustive()
    }
}
