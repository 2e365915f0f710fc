//! Tables of counters: hashed, of a fixed size, written by any thread without waiting
//! ([design/telemetry.md `.counters`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::{AtomicU64, Ordering, Update, fence};

use crate::format::{EntryState, TABLE_ENTRY_WORDS, TABLE_TEXT_WORDS, WORD_BYTES, words_of_text};

/// The number of entries in which something may lie, from its first place on: so a search takes
/// bounded time.
const PROBES: usize = 16;

/// The unit in which the first word counts how often an entry was taken.
const GENERATION: u64 = 1 << 8;

/// The words of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'w, const WORDS: usize = TABLE_ENTRY_WORDS>(&'w [AtomicU64; WORDS]);

impl<'w, const WORDS: usize> Entry<'w, WORDS> {
    /// The entry in these words.
    #[must_use]
    pub const fn new(words: &'w [AtomicU64; WORDS]) -> Self {
        Self(words)
    }

    /// A word, by its number in one of the enumerations of the format.
    #[inline]
    #[must_use]
    pub fn word(self, word: usize) -> &'w AtomicU64 {
        &self.0[word]
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(self, word: usize, amount: u64) {
        self.word(word).fetch_add(amount, Ordering::Relaxed);
    }

    /// As [`add`](Self::add). A reader that sees it also sees what this thread added before.
    pub fn add_after(self, word: usize, amount: u64) {
        self.word(word).fetch_add(amount, Ordering::Release);
    }

    /// Sets a word that is less.
    pub(crate) fn raise(self, word: usize, value: u64) {
        self.word(word).fetch_max(value, Ordering::Relaxed);
    }

    /// Adds to a number of floating point. Another thread's addition in between has this one
    /// repeated, so nothing is lost.
    pub(crate) fn add_float(self, word: usize, amount: f64) {
        let add = |bits| Some((f64::from_bits(bits) + amount).to_bits());
        let _ = self.word(word).update_by(add);
    }

    /// Sets a word that is zero, and returns what it is then.
    pub(crate) fn set_once(self, word: usize, value: u64) -> u64 {
        match self.word(word).compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => value,
            Err(other) => other,
        }
    }

    /// Sets a word.
    #[inline]
    pub fn set(self, word: usize, value: u64) {
        self.word(word).store(value, Ordering::Relaxed);
    }

    #[cfg(not(tripoint_loom))]
    pub(crate) fn get(self, word: usize) -> u64 {
        self.word(word).load(Ordering::Relaxed)
    }

    /// Sets the words of a text.
    pub(crate) fn set_text(self, word: usize, text: &str) {
        for (index, value) in table_text(text).into_iter().enumerate() {
            self.set(word + index, value);
        }
    }

    /// Marks that what the entry counted no longer exists. The counts stay until the entry is
    /// taken again.
    pub fn retire(self) {
        let state = self.word(0).load(Ordering::Relaxed);
        let gone = state & !(GENERATION - 1) | EntryState::Gone as u64;
        // If another thread takes the entry meanwhile, it is gone already.
        let _ = self.word(0).compare_exchange(state, gone, Ordering::Release, Ordering::Relaxed);
    }

    /// As [`retire`](Self::retire), but what the entry had is not kept: its other words are zero.
    #[cfg(not(tripoint_loom))]
    pub(crate) fn erase(self) {
        let state = self.word(0).load(Ordering::Relaxed);
        // If another thread takes the entry or erases it meanwhile, it is gone already.
        if state_of(state) == EntryState::Live as u64 {
            self.change_from(state, EntryState::Gone, Self::clear);
        }
    }

    fn clear(self) {
        (1..WORDS).for_each(|word| self.set(word, 0));
    }

    #[inline]
    fn is_in(self, state: EntryState) -> bool {
        state_of(self.word(0).load(Ordering::Acquire)) == state as u64
    }

    /// Whether the entry is in use.
    #[inline]
    #[must_use]
    pub fn is_live(self) -> bool {
        self.is_in(EntryState::Live)
    }

    /// Whether the entry has these keys, each a word and its value.
    #[inline]
    #[must_use]
    pub fn has<const KEYS: usize>(self, keys: &[(usize, u64); KEYS]) -> bool {
        keys.iter().all(|&(word, key)| self.word(word).load(Ordering::Relaxed) == key)
    }

    /// Whether the entry is in use and has these keys, all of them at once: another thread may be giving it to
    /// something else, whose keys come one by one.
    #[inline]
    fn is_of<const KEYS: usize>(self, keys: &[(usize, u64); KEYS]) -> bool {
        let state = self.word(0).load(Ordering::Acquire);
        if state_of(state) != EntryState::Live as u64 || !self.has(keys) {
            return false;
        }
        fence(Ordering::Acquire);
        self.word(0).load(Ordering::Relaxed) == state
    }

    /// Takes the entry, has `fill` write it, and makes it live. Returns false if another thread is
    /// taking it.
    pub fn renew(self, fill: impl FnOnce(Self)) -> bool {
        let state = self.word(0).load(Ordering::Relaxed);
        state_of(state) != EntryState::Making as u64 && self.change_from(state, EntryState::Live, fill)
    }

    /// Takes the entry, if it was never taken. Returns false if it was, or another thread is taking it.
    #[cfg(tripoint_on_linux)]
    pub(crate) fn take_free(self, fill: impl FnOnce(Self)) -> bool {
        let state = self.word(0).load(Ordering::Relaxed);
        state_of(state) == EntryState::Free as u64 && self.change_from(state, EntryState::Live, fill)
    }

    /// Takes the entry, if it is not in use. Returns false if it is, or another thread is taking it.
    fn take_unused(self, fill: impl FnOnce(Self)) -> bool {
        let state = self.word(0).load(Ordering::Relaxed);
        let unused = [EntryState::Free as u64, EntryState::Gone as u64];
        unused.contains(&state_of(state)) && self.change_from(state, EntryState::Live, fill)
    }

    /// Has `fill` write the entry, if its first word is still `state`. From then on it is in the state `to`.
    fn change_from(self, state: u64, to: EntryState, fill: impl FnOnce(Self)) -> bool {
        let generation = state & !(GENERATION - 1);
        let making = generation.wrapping_add(GENERATION) | EntryState::Making as u64;
        if self.word(0).compare_exchange(state, making, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        // A reader that sees one of the new words also sees that they are being written.
        fence(Ordering::Release);
        fill(self);
        let done = generation.wrapping_add(GENERATION) | to as u64;
        self.word(0).store(done, Ordering::Release);
        true
    }
}

/// A text in the words of an entry.
pub(crate) fn table_text(text: &str) -> [u64; TABLE_TEXT_WORDS] {
    let mut words = [0; TABLE_TEXT_WORDS];
    for (to, word) in words.iter_mut().zip(words_of_text(text, (TABLE_TEXT_WORDS - 1) * WORD_BYTES)) {
        *to = word;
    }
    words
}

#[inline]
fn state_of(first_word: u64) -> u64 {
    first_word % GENERATION
}

/// The entries of a section.
#[derive(Clone, Copy, Debug)]
pub struct Table<'w> {
    entries: &'w [[AtomicU64; TABLE_ENTRY_WORDS]],
    left_out: &'w AtomicU64,
}

impl<'w> Table<'w> {
    /// The entries in these words.
    pub fn new(words: &'w [AtomicU64], left_out: &'w AtomicU64) -> Self {
        Self { entries: words.as_chunks().0, left_out }
    }

    /// The only entry of a table of one.
    #[must_use]
    pub fn only_entry(&self) -> Option<Entry<'w>> {
        self.entries.first().map(Entry)
    }

    /// All entries, in use or not.
    #[cfg(not(tripoint_loom))]
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'w>> {
        self.entries.iter().map(Entry)
    }

    /// How often no entry was left.
    #[cfg(all(test, not(tripoint_loom)))]
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The place of something with these keys, if nothing else is there.
    #[inline]
    fn first_place<const KEYS: usize>(&self, keys: &[(usize, u64); KEYS]) -> usize {
        // The odd number next to 2^64 over the golden ratio, which spreads numbers that follow each other.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let hash =
            keys.iter().fold(0_u64, |hash, &(_, key)| (hash.rotate_left(23) ^ key).wrapping_mul(SPREAD));
        (hash >> 32) as usize
    }

    #[inline]
    fn place(&self, place: usize) -> Option<Entry<'w>> {
        let entries = self.entries;
        entries.get(place & entries.len().wrapping_sub(1)).map(Entry)
    }

    /// The entries in which something with these keys may be.
    fn places<const KEYS: usize>(&self, keys: &[(usize, u64); KEYS]) -> impl Iterator<Item = Entry<'w>> {
        let (table, first) = (*self, self.first_place(keys));
        (0..PROBES.min(self.entries.len())).filter_map(move |probe| table.place(first + probe))
    }

    /// The entry with these keys, each a word and its value. By value: what is not found at once has a copy of
    /// its own.
    #[inline(always)]
    pub fn entry_of<const KEYS: usize>(&self, keys: [(usize, u64); KEYS]) -> Option<Entry<'w>> {
        match self.place(self.first_place(&keys)) {
            Some(entry) if entry.is_of(&keys) => Some(entry),
            _ => self.entry_elsewhere(keys),
        }
    }

    #[cold]
    #[inline(never)]
    fn entry_elsewhere<const KEYS: usize>(&self, keys: [(usize, u64); KEYS]) -> Option<Entry<'w>> {
        let keys = &keys;
        let is_taken = |entry: &Entry<'w>| !entry.is_in(EntryState::Free);
        self.places(keys).take_while(is_taken).find(|entry| entry.is_of(keys))
    }

    /// Takes an entry for these keys. Its other words are zero, except those that `fill` sets. If none
    /// is left, this is counted.
    #[cold]
    pub fn take_entry<const KEYS: usize>(
        &self,
        keys: &[(usize, u64); KEYS],
        fill: impl Fn(Entry<'w>),
    ) -> Option<Entry<'w>> {
        let taken = self.places(keys).find(|entry| {
            entry.take_unused(|entry| {
                entry.clear();
                keys.iter().for_each(|&(word, key)| entry.set(word, key));
                fill(entry);
            })
        });
        if taken.is_none() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// The entry with these keys, which is taken if there is none.
    pub fn entry_for<const KEYS: usize>(&self, keys: &[(usize, u64); KEYS]) -> Option<Entry<'w>> {
        self.entry_of(*keys).or_else(|| self.take_entry(keys, |_| ()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use proptest::prelude::*;
    use tripoint_oracle::{cases, effort};

    use super::*;

    fn words(entries: usize) -> Vec<AtomicU64> {
        (0..entries * TABLE_ENTRY_WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Add(u64),
        Retire(u64),
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_as_a_map_with_little_room(
            steps in proptest::collection::vec(
                prop_oneof![3 => (0..40_u64).prop_map(Step::Add), 1 => (0..40_u64).prop_map(Step::Retire)],
                0..effort(200) as usize,
            ),
        ) {
            let (words, left_out) = (words(16), AtomicU64::new(0));
            let table = Table::new(&words, &left_out);
            let mut oracle = BTreeMap::new();
            let mut refused = 0;
            for step in steps {
                match step {
                    Step::Add(key) => {
                        let room = oracle.contains_key(&key) || oracle.len() < 16;
                        let entry = table.entry_for(&[(1, key), (2, 7)]);
                        prop_assert_eq!(entry.is_some(), room);
                        if let Some(entry) = entry {
                            entry.add(3, 1);
                            *oracle.entry(key).or_insert(0) += 1;
                        } else {
                            refused += 1;
                        }
                    }
                    Step::Retire(key) => {
                        let entry = table.entry_of([(1, key), (2, 7)]);
                        prop_assert_eq!(entry.is_some(), oracle.remove(&key).is_some());
                        entry.into_iter().for_each(Entry::retire);
                    }
                }
                for (&key, &count) in &oracle {
                    let entry = table.entry_of([(1, key), (2, 7)]).unwrap();
                    prop_assert_eq!(entry.word(3).load(Ordering::Relaxed), count);
                }
                prop_assert_eq!(left_out.load(Ordering::Relaxed), refused);
            }
        }
    }
}
