//! The binary format of telemetry: everything that a writer and a reader have to agree on, as
//! constants, and the few functions that pack and unpack words. The page
//! [design/telemetry.md](crate::design::telemetry) describes the format in prose, with a figure, for
//! readers in other languages.
//!
//! A file consists of words of 64 bits, in the byte order of the machine that wrote it. An `enum`
//! whose name ends in `Word` numbers the words of one structure. Every read and every write is one
//! of whole words.

pub(crate) mod counters;
pub(crate) mod header;
pub(crate) mod kinds;
pub(crate) mod objects;
pub(crate) mod point_log;
pub(crate) mod record;
pub(crate) mod ring;
pub(crate) mod switches;
pub(crate) mod text;

pub use counters::{
    ArenaWord, EntryState, ExtentWord, HeapWord, MAX_TALLY_CLASSES, MAX_TALLY_DETECTORS, MAX_TALLY_THREADS,
    OTHER_POOLS, PhaseWord, PointWord, PoolWord, SampleWord, TABLE_ENTRY_WORDS, TABLE_TEXT_WORDS,
    TALLY_NUMBERS, TALLY_THREAD_WORDS, TallyNumber, TallyThreadWord, TallyWord,
};
pub use header::{
    BYTE_ORDER, ClockKind, DATA_NAME, FileState, HEADER_WORDS, HeaderFlags, HeaderWord, MAGIC, MAX_ENTRIES,
    MAX_RING_BYTES, MAX_RINGS, MAX_SECTIONS, PAGE_WORDS, SECTION_WORDS, SWITCHES_NAME, SectionKind,
    SectionWord, VERSION, WORD_BYTES,
};
#[cfg(all(feature = "reader", unix, not(tripoint_loom)))]
pub(crate) use kinds::with_kinds;
pub use kinds::{EventKind, Field, FieldForm};
pub use objects::{MAX_BUILD_ID_BYTES, MAX_OBJECTS, MAX_PATH_BYTES, OBJECT_WORDS, ObjectWord};
pub use point_log::{LOG_HEADER_WORDS, LOG_MAGIC, LOG_VERSION, LogCheck};
pub use record::{HEAD_WORDS, Head, MAX_FRAMES, MAX_RECORD_WORDS, MAX_TEXT_BYTES, RecordKind};
pub use ring::{
    BLOCK_WORDS, CLOCK_RECORD_WORDS, MAX_THREAD_NAME_BYTES, RING_HEAD_WORDS, RingState, RingWord,
    words_left_in_block,
};
pub use switches::{SWITCHES_MAGIC, SWITCHES_WORDS, SwitchWord};
#[cfg(all(target_has_atomic = "64", tripoint_on_linux, not(tripoint_loom)))]
pub(crate) use text::words_of_bytes;
pub use text::{text_from_words, text_words, words_of_text};
