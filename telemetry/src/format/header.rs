//! The first page of a telemetry file, and its table of sections
//! ([design/telemetry.md `.header`, `.sections`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::ffi::CStr;

use bitflags::bitflags;

/// The bytes of a word.
pub const WORD_BYTES: usize = size_of::<u64>();

/// The words of a page. Sections begin at multiples of it, on every target.
pub const PAGE_WORDS: usize = 512;

/// The words of the header: one page.
pub const HEADER_WORDS: usize = PAGE_WORDS;

/// The first eight bytes of a file, in the order in which they lie there.
pub const MAGIC: [u8; WORD_BYTES] = *b"tripoint";

/// The version of the format. A reader refuses files of a greater version. Additions that old
/// readers can skip (kinds of sections, kinds of events, flags) do not change it. Version 2 says who the threads of
/// tallies are, and has lasting rings and extents.
pub const VERSION: u64 = 2;

/// The name of a telemetry file in memory, as the descriptors of its process show it.
pub const DATA_NAME: &CStr = c"tripoint-telemetry";

/// The name of its page of switches.
pub const SWITCHES_NAME: &CStr = c"tripoint-telemetry-switches";

/// The word that shows the byte order of a file: a reader of another order sees
/// `0x0807_0605_0403_0201`.
pub const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;

/// The words of the header. The first five, up to the process, keep their places in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum HeaderWord {
    /// [`MAGIC`].
    Magic = 0,
    /// [`VERSION`].
    Version,
    /// [`BYTE_ORDER`].
    ByteOrder,
    /// A [`FileState`]. It is the last word that is written when a file is made.
    State,
    /// The number of the process that writes; zero in memory that the program provided.
    Process,
    /// The bytes of the file.
    FileBytes,
    /// The bytes of a pointer of the process: 4 or 8.
    PointerBytes,
    /// [`HeaderFlags`]: how the file is kept.
    Flags,
    /// A [`ClockKind`]: what the times in records are.
    Clock,
    /// The clock's time when the file was made, in its ticks.
    AnchorTicks,
    /// The system's monotonic clock at the same moment, in ns.
    AnchorNanoseconds,
    /// The time of day at the same moment, in ns since 1970; zero if unknown.
    AnchorUnix,
    /// Ticks of the clock that took [`HeaderWord::SpanNanoseconds`].
    SpanTicks,
    /// What [`HeaderWord::SpanTicks`] took, in ns. Neither is zero.
    SpanNanoseconds,
    /// The number of sections.
    Sections,
    /// Which telemetry of its process this is, counted from one. It tells files in the same memory apart.
    Instance,
    /// A number that the page of switches of this file has as well
    /// ([`SwitchWord::Identity`](super::SwitchWord::Identity)), and no other; zero if there is none.
    Identity,
    /// Where the table of sections begins, whose entries have [`SECTION_WORDS`] each.
    SectionTable = 32,
}

/// The most entries of a table. A reader needs room for no more.
pub const MAX_ENTRIES: usize = 65_536;
/// The most rings of a file. A reader needs room for no more.
pub const MAX_RINGS: usize = 4_096;
/// The most bytes of a ring, its head included: 1 GiB. Writers make no larger ring, and readers refuse one.
pub const MAX_RING_BYTES: u64 = 1 << 30;

/// The words of an entry in the table of sections.
pub const SECTION_WORDS: usize = 8;

/// The most sections that a header has room for.
pub const MAX_SECTIONS: usize = (HEADER_WORDS - HeaderWord::SectionTable as usize) / SECTION_WORDS;

/// The words of an entry in the table of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum SectionWord {
    /// A [`SectionKind`]. Readers skip kinds that they do not know.
    Kind = 0,
    /// Where the section begins in the file: bytes, a multiple of a page.
    Offset,
    /// The number of its entries.
    Entries,
    /// The bytes of each entry, a multiple of a word.
    EntryBytes,
    /// How often no entry was left for something new.
    LeftOut,
}

/// What a section contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum SectionKind {
    /// Entries of [`ArenaWord`](super::ArenaWord)s.
    Arenas = 1,
    /// Entries of [`PoolWord`](super::PoolWord)s.
    Pools = 2,
    /// Entries of [`PointWord`](super::PointWord)s.
    Points = 3,
    /// One entry of [`PhaseWord`](super::PhaseWord)s.
    Phase = 4,
    /// One entry of [`TallyWord`](super::TallyWord)s, with the numbers of all threads.
    Tallies = 5,
    /// Rings, one for each thread: [`RingWord`](super::RingWord)s, then blocks.
    Rings = 6,
    /// Entries of [`SampleWord`](super::SampleWord)s.
    Samples = 7,
    /// Entries of [`ObjectWord`](super::ObjectWord)s.
    Objects = 8,
    /// Entries of [`HeapWord`](super::HeapWord)s.
    Heaps = 9,
    /// Further rings of the same threads, in the same order, for what must not be overwritten by frequent events. Of
    /// their [`RingWord`](super::RingWord)s those that say who the thread is are zero.
    LastingRings = 10,
    /// Entries of [`ExtentWord`](super::ExtentWord)s.
    Extents = 11,
}

impl SectionKind {
    /// The kind with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Arenas),
            2 => Some(Self::Pools),
            3 => Some(Self::Points),
            4 => Some(Self::Phase),
            5 => Some(Self::Tallies),
            6 => Some(Self::Rings),
            7 => Some(Self::Samples),
            8 => Some(Self::Objects),
            9 => Some(Self::Heaps),
            10 => Some(Self::LastingRings),
            11 => Some(Self::Extents),
            _ => None,
        }
    }
}

/// Whether a file is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum FileState {
    /// The header is not complete yet.
    Making = 0,
    /// The process may write.
    Open = 1,
    /// The process has ended its telemetry: nothing changes any more.
    Closed = 2,
}

/// What the times in records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ClockKind {
    /// There is no clock: all times are zero.
    None = 0,
    /// ns of the system's monotonic clock, or of a clock that the program provided.
    Nanoseconds = 1,
    /// The processor's time-stamp counter, which is the same on all cores and does not stop.
    Ticks = 2,
}

bitflags! {
    /// How a file is kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HeaderFlags: u64 {
        /// A file in memory without a path: readers find it by the number of its process, and it exists as
        /// long as any process has it open.
        const ANONYMOUS = 1;
        /// A file with a path.
        const PATH = 1 << 1;
        /// Its file system keeps it in memory and does not write it back, so pages that were written once
        /// do not fault again unless they are swapped out.
        const IN_MEMORY = 1 << 2;
        /// The file is sealed: its size cannot change, and no other process can write to it.
        const SEALED = 1 << 3;
        /// Every page was written to before the first event.
        const PREFAULTED = 1 << 4;
        /// The file is locked in memory.
        const LOCKED = 1 << 5;
        /// Forked children do not write.
        const PARENT_ONLY = 1 << 6;
        /// Other processes can change the switches.
        const SWITCHES = 1 << 7;
        /// The program leaves addresses out for good, whatever the switches say.
        const WITHOUT_ADDRESSES = 1 << 8;
    }
}
