//! Opens a file, and finds out what it is and where its parts are; nothing in it is trusted
//! ([design/telemetry.md `.reader.errors`](crate::design::telemetry)).

use std::boxed::Box;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::vec::Vec;

use crate::format::{
    BLOCK_WORDS, BYTE_ORDER, FileState, HEADER_WORDS, HeaderFlags, HeaderWord, MAGIC, MAX_ENTRIES,
    MAX_OBJECTS, MAX_RING_BYTES, MAX_RINGS, MAX_SECTIONS, OBJECT_WORDS, RING_HEAD_WORDS, SECTION_WORDS,
    SWITCHES_MAGIC, SectionKind, SectionWord, SwitchWord, TABLE_ENTRY_WORDS, TallyWord, VERSION,
};
use crate::reader::clock::Clock;
use crate::reader::core_file;
use crate::reader::error::OpenError;
use crate::reader::file::{Damage, FileInfo, Reader, Section, WORD};
use crate::reader::words::{FileWords, Words};

/// Without this flag, opening a FIFO waits for a writer. It has no effect on files.
pub(super) const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 4 };

impl Reader {
    /// Opens a telemetry file, or a core file of a process that had one.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        Self::from_file(open_file(path).map_err(OpenError::system_at("open the file", path))?)
    }

    /// Reads a file that is open already: a memfd, a file with a path, or a core file.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_file(file: File) -> Result<Self, OpenError> {
        let refused = OpenError::system("look at the file");
        if !file.metadata().map_err(&refused)?.is_file() {
            let why = "it is not a regular file; pass a telemetry file, or a core file";
            return Err(refused(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        match core_file::find(&file).map_err(OpenError::system("read the core file"))? {
            Some(part) => {
                Self::from_words(FileWords { file, base: part.start, bytes: Some(part.end - part.start) })
            }
            None => Self::from_words(FileWords { file, base: 0, bytes: None }),
        }
    }

    /// Reads the bytes of a telemetry file.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::from_words(bytes)
    }

    /// Reads words from anywhere.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[doc(hidden)]
    pub fn from_words(words: impl Words + Send + Sync + 'static) -> Result<Self, OpenError> {
        let refused = OpenError::system("read the file");
        let bytes = words.bytes().map_err(&refused)?;
        let mut header = [0; HEADER_WORDS];
        let there = (bytes / WORD).min(HEADER_WORDS as u64) as usize;
        words.read(0, &mut header[..there]).map_err(&refused)?;
        let header_word = |word: HeaderWord| header[word as usize];
        let process = header_word(HeaderWord::Process);
        let version = header_word(HeaderWord::Version);
        if header_word(HeaderWord::Magic) == u64::from_ne_bytes(SWITCHES_MAGIC) {
            return Err(OpenError::AreSwitches { process: header[SwitchWord::Process as usize] });
        }
        if header_word(HeaderWord::Magic) != u64::from_ne_bytes(MAGIC) {
            return Err(OpenError::NotTelemetry { bytes });
        }
        let truncated = |expected, readable| OpenError::Truncated { bytes, expected, readable };
        let header_bytes = HEADER_WORDS as u64 * WORD;
        if there <= HeaderWord::Process as usize {
            return Err(truncated(header_bytes, None));
        }
        if header_word(HeaderWord::State) == FileState::Making as u64 {
            return Err(OpenError::Unfinished { process });
        }
        match header_word(HeaderWord::ByteOrder) {
            BYTE_ORDER => {}
            order if order == BYTE_ORDER.swap_bytes() => {
                let (process, version) = (process.swap_bytes(), version.swap_bytes());
                return Err(OpenError::ForeignByteOrder { process, version });
            }
            _ => return Err(OpenError::Damaged { what: "no machine has its byte order" }),
        }
        if version > VERSION {
            return Err(OpenError::Newer { process, version });
        }
        if there < HEADER_WORDS {
            return Err(truncated(header_bytes, None));
        }
        if version == 0 || ![4, 8].contains(&header_word(HeaderWord::PointerBytes)) {
            return Err(OpenError::Damaged {
                what: "its version is 0, or its pointers have neither 4 nor 8 bytes",
            });
        }
        let expected = header_word(HeaderWord::FileBytes);
        let info = FileInfo {
            version,
            process,
            bytes: expected,
            pointer_bytes: header_word(HeaderWord::PointerBytes),
            flags: HeaderFlags::from_bits_retain(header_word(HeaderWord::Flags)),
            identity: header_word(HeaderWord::Identity),
            clock: Clock::new(header_word),
        };
        let mut reader =
            Self { words: Box::new(words), info, sections: Default::default(), damage: Vec::new() };
        reader.find_sections(&header, bytes);
        if bytes < expected { Err(truncated(expected, Some(Box::new(reader)))) } else { Ok(reader) }
    }

    /// Finds the sections in the table. Of two sections of one kind the first counts.
    fn find_sections(&mut self, header: &[u64; HEADER_WORDS], bytes: u64) {
        let table = &header[HeaderWord::SectionTable as usize..];
        let count = usize::try_from(header[HeaderWord::Sections as usize]).unwrap_or(usize::MAX);
        if count > MAX_SECTIONS {
            self.damage.push(Damage {
                section: MAX_SECTIONS,
                what: "a header does not have room for this many sections",
            });
        }
        for (index, entry) in table.as_chunks::<SECTION_WORDS>().0.iter().enumerate().take(count) {
            let Some(kind) = SectionKind::from_number(entry[SectionWord::Kind as usize]) else { continue };
            let found = &mut self.sections[kind as usize - 1];
            if found.entry_bytes != 0 {
                self.damage.push(Damage { section: index, what: "an earlier section has the same kind" });
                continue;
            }
            let left_out =
                HeaderWord::SectionTable as usize + index * SECTION_WORDS + SectionWord::LeftOut as usize;
            match section(kind, entry, bytes, self.info.bytes) {
                Ok(section) => *found = Section { left_out_at: Some(left_out as u64 * WORD), ..section },
                Err(what) => self.damage.push(Damage { section: index, what }),
            }
        }
    }
}

/// Opens a file to read it, without waiting if it is not a regular file.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)
}

/// The section that an entry of the table describes, as far as the file has bytes for it; or what is wrong.
fn section(kind: SectionKind, entry: &[u64], bytes: u64, expected: u64) -> Result<Section, &'static str> {
    let word = |word: SectionWord| entry[word as usize];
    let (offset, entries, entry_bytes) =
        (word(SectionWord::Offset), word(SectionWord::Entries), word(SectionWord::EntryBytes));
    if !offset.is_multiple_of(WORD) || !entry_bytes.is_multiple_of(WORD) {
        return Err("it or one of its entries does not begin at a word");
    }
    let end = entries.checked_mul(entry_bytes).and_then(|bytes| bytes.checked_add(offset));
    if end.is_none_or(|end| end > expected) {
        return Err("it ends beyond the end of the file");
    }
    // A ring that is cut off can be read up to its end; an entry of a table cannot.
    let (least, most) = match kind {
        SectionKind::Rings | SectionKind::LastingRings => {
            let words = (entry_bytes / WORD).saturating_sub(RING_HEAD_WORDS as u64);
            if !words.is_power_of_two() || words < 2 * BLOCK_WORDS as u64 || entry_bytes > MAX_RING_BYTES {
                return Err("its rings have a size that no ring can have");
            }
            (RING_HEAD_WORDS as u64 * WORD, MAX_RINGS)
        }
        _ => {
            let (words, most) = match kind {
                SectionKind::Tallies => (TallyWord::DetectorNames as usize, MAX_ENTRIES),
                SectionKind::Objects => (OBJECT_WORDS, MAX_OBJECTS),
                _ => (TABLE_ENTRY_WORDS, MAX_ENTRIES),
            };
            if entry_bytes < words as u64 * WORD {
                return Err("its entries are too short");
            }
            (entry_bytes, most)
        }
    };
    let there = bytes.saturating_sub(offset);
    let whole = there / entry_bytes + u64::from(there % entry_bytes >= least);
    let entries = usize::try_from(entries.min(whole)).unwrap_or(most).min(most);
    Ok(Section { offset, entries, entry_bytes, left_out_at: None })
}
