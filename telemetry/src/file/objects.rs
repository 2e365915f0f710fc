//! The table of the objects that are loaded, to which entries are only added
//! ([design/telemetry.md `.objects`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::{AtomicU64, Ordering};

use crate::file::table::Entry;
use crate::format::{
    MAX_BUILD_ID_BYTES, MAX_PATH_BYTES, OBJECT_WORDS, ObjectWord, WORD_BYTES, words_of_bytes,
};

/// What is noted of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object<'o> {
    pub(crate) base: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) build_id: &'o [u8],
    pub(crate) path: &'o [u8],
}

impl Object<'_> {
    /// The words of its entry; the state is zero.
    fn words(&self) -> [u64; OBJECT_WORDS] {
        let mut words = [0; OBJECT_WORDS];
        let id = &self.build_id[..self.build_id.len().min(MAX_BUILD_ID_BYTES)];
        words[ObjectWord::Base as usize] = self.base;
        words[ObjectWord::Start as usize] = self.start;
        words[ObjectWord::End as usize] = self.end;
        words[ObjectWord::BuildIdBytes as usize] = id.len() as u64;
        for (to, bytes) in words[ObjectWord::BuildId as usize..].iter_mut().zip(id.chunks(WORD_BYTES)) {
            let mut word = [0; WORD_BYTES];
            word[..bytes.len()].copy_from_slice(bytes);
            *to = u64::from_ne_bytes(word);
        }
        let path = words_of_bytes(self.path, MAX_PATH_BYTES);
        for (to, word) in words[ObjectWord::Path as usize..].iter_mut().zip(path) {
            *to = word;
        }
        words
    }
}

/// The entries of the section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectTable<'w> {
    entries: &'w [[AtomicU64; OBJECT_WORDS]],
    left_out: &'w AtomicU64,
}

impl<'w> ObjectTable<'w> {
    /// The entries in these words.
    pub(crate) fn new(words: &'w [AtomicU64], left_out: &'w AtomicU64) -> Self {
        Self { entries: words.as_chunks().0, left_out }
    }

    /// Whether there is no room for any object.
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn entries(&self) -> impl DoubleEndedIterator<Item = Entry<'w, OBJECT_WORDS>> {
        self.entries.iter().map(Entry::new)
    }

    /// Adds an object, unless it is the last that was noted at its addresses. If no entry is left, this is counted.
    pub(crate) fn note(&self, object: &Object<'_>) {
        let words = object.words();
        let last = self.entries().rev().find(|entry| {
            let [start, end] = [ObjectWord::Start, ObjectWord::End].map(|word| entry.get(word as usize));
            entry.is_live() && start < object.end && object.start < end
        });
        let is_same =
            |entry: Entry<'_, OBJECT_WORDS>| (1..OBJECT_WORDS).all(|word| entry.get(word) == words[word]);
        if last.is_some_and(is_same) {
            return;
        }
        let fill =
            |entry: Entry<'_, OBJECT_WORDS>| (1..OBJECT_WORDS).for_each(|word| entry.set(word, words[word]));
        if !self.entries().any(|entry| entry.take_free(fill)) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::format::EntryState;

    fn object(base: u64, path: &[u8]) -> Object<'_> {
        Object { base, start: base + 0x10, end: base + 0x20, build_id: &[7; 20], path }
    }

    #[test]
    fn objects_are_added_once_and_never_removed() {
        let words: Vec<_> = (0..4 * OBJECT_WORDS).map(|_| AtomicU64::new(0)).collect();
        let left_out = AtomicU64::new(0);
        let table = ObjectTable::new(&words, &left_out);
        let count = || table.entries().filter(|entry| entry.is_live()).count();
        for _ in 0..2 {
            table.note(&object(0x100, b"one"));
            table.note(&object(0x200, b"two"));
            assert_eq!((count(), left_out.load(Ordering::Relaxed)), (2, 0));
        }
        table.note(&object(0x100, b"another at the same place"));
        table.note(&object(0x100, b"one"));
        assert_eq!(count(), 4, "the last one counts");
        table.note(&object(0x300, b"no entry is left"));
        table.note(&object(0x200, b"two"));
        assert_eq!((count(), left_out.load(Ordering::Relaxed)), (4, 1));
        let states = words.chunks(OBJECT_WORDS).map(|entry| entry[0].load(Ordering::Relaxed) % 256);
        assert!(states.eq([EntryState::Live as u64; 4]));
    }

    #[test]
    fn what_is_too_long_is_cut_off() {
        let words = Object { build_id: &[1; 99], ..object(0, &[b'p'; 999]) }.words();
        assert_eq!(words[ObjectWord::BuildIdBytes as usize], MAX_BUILD_ID_BYTES as u64);
        assert_eq!(words[ObjectWord::Path as usize], 999 << 32 | MAX_PATH_BYTES as u64);
        assert_eq!(words[OBJECT_WORDS - 1], u64::from_ne_bytes([b'p'; 8]));
    }
}
