//! Entries of tables, each read as a whole ([design/telemetry.md `.counters`](crate::design::telemetry)).

use std::io;
use std::vec::Vec;

use tripoint_core::internal::{Ordering, fence};

use crate::format::{EntryState, SectionKind, TABLE_ENTRY_WORDS, TABLE_TEXT_WORDS};
use crate::reader::file::Reader;
use crate::reader::values::Text;
use crate::reader::words::word;

/// The words of one entry of counters.
pub(super) type Entry = [u64; TABLE_ENTRY_WORDS];

/// How often an entry that is being taken is read before it is left out.
const TRIES: usize = 8;

/// The entries of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<T> {
    /// The entries in use, and those whose subject no longer exists.
    pub entries: Vec<T>,
    /// How often no entry was left for something new.
    pub left_out: u64,
    /// How many entries were left out because they changed whenever they were read, or made no sense.
    pub unsteady: usize,
}

/// No entries, and none that were left out.
impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), left_out: 0, unsteady: 0 }
    }
}

/// An entry as it was read.
enum Found<const WORDS: usize> {
    Nothing,
    Unsteady,
    Entry([u64; WORDS]),
}

pub(super) fn table<T, const WORDS: usize>(
    reader: &Reader,
    kind: SectionKind,
    make: impl Fn(&[u64; WORDS]) -> T,
) -> io::Result<Table<T>> {
    let section = reader.section(kind);
    let left_out = section.left_out_at.map_or(Ok(0), |at| word(reader.words(), at))?;
    let mut table = Table { entries: Vec::new(), left_out, unsteady: 0 };
    for index in 0..section.entries {
        match entry(reader, section.entry(index))? {
            Found::Nothing => {}
            Found::Unsteady => table.unsteady += 1,
            Found::Entry(entry) => table.entries.push(make(&entry)),
        }
    }
    Ok(table)
}

/// Reads an entry until its first word is the same before and after, so that all words are of one entry.
fn entry<const WORDS: usize>(reader: &Reader, at: u64) -> io::Result<Found<WORDS>> {
    let mut entry = [0; WORDS];
    for _ in 0..TRIES {
        let before = word(reader.words(), at)?;
        if state(before) == EntryState::Free as u64 {
            return Ok(Found::Nothing);
        }
        fence(Ordering::Acquire);
        reader.words().read(at, &mut entry)?;
        fence(Ordering::Acquire);
        let after = word(reader.words(), at)?;
        let whole = [EntryState::Live as u64, EntryState::Gone as u64];
        if before == after && before == entry[0] && whole.contains(&state(before)) {
            return Ok(Found::Entry(entry));
        }
    }
    Ok(Found::Unsteady)
}

fn state(word: u64) -> u64 {
    word & 0xff
}

pub(super) fn is_live(entry: &Entry) -> bool {
    state(entry[0]) == EntryState::Live as u64
}

/// The text at a word of an entry; none if it does not fit there.
pub(super) fn text(entry: &Entry, at: usize) -> Text {
    let words = entry.get(at..at + TABLE_TEXT_WORDS).unwrap_or_default();
    Text::from_words(words).map_or(Text::EMPTY, |(text, _)| text)
}
