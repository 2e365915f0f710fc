//! Several words that one thread writes, and any thread reads, as one value. Neither side
//! locks or waits (design/contract.md `.alarm`).

use tripoint_core::aver;
use tripoint_core::internal::{AtomicUsize, Ordering, fence};

use crate::words::atomics::{const_fn, zeros};

/// The words, and how often they were written. There is no value before the first write.
#[derive(Debug)]
pub struct Versioned<const WORDS: usize> {
    /// Twice the number of writes, plus one during a write.
    version: AtomicUsize,
    words: [AtomicUsize; WORDS],
}

impl<const WORDS: usize> Default for Versioned<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const WORDS: usize> Versioned<WORDS> {
    /// Where version and words are, for debuggers.
    #[cfg(not(tripoint_loom))]
    pub(crate) const OFFSETS: [usize; 2] =
        [core::mem::offset_of!(Self, version), core::mem::offset_of!(Self, words)];

    const_fn! {
        /// Nothing written yet.
        #[must_use]
        pub fn new() -> Self {
            Self { version: AtomicUsize::new(0), words: zeros() }
        }
    }

    /// Writes the words. Only the writer calls this.
    pub fn write(&self, words: &[usize; WORDS]) {
        let version = self.begin();
        self.fill(words);
        self.end(version);
    }

    /// First step of a write: from here on, readers get nothing.
    pub fn begin(&self) -> usize {
        let version = self.version.load(Ordering::Relaxed);
        aver!(version.is_multiple_of(2), "a write begins within a write: version {version}");
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // A reader that sees one of the new words also sees that a write began.
        fence(Ordering::Release);
        version
    }

    /// Second step: the words.
    pub fn fill(&self, words: &[usize; WORDS]) {
        for (to, &word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Third step: readers may read again.
    pub fn end(&self, version: usize) {
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Returns the words, and the version they are of. Returns `None` before the first write
    /// and during a write: read again to find it.
    #[must_use]
    pub fn read(&self) -> Option<(usize, [usize; WORDS])> {
        let version = self.version.load(Ordering::Acquire);
        if version == 0 || version % 2 == 1 {
            return None;
        }
        let words = self.own();
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some((version, words))
    }

    /// The words as they are. Only the writer calls this.
    #[must_use]
    pub fn own(&self) -> [usize; WORDS] {
        core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed))
    }

    /// Forgets all writes, and writes every page. Called before anything reads or writes.
    pub fn reset(&self) {
        self.version.store(0, Ordering::Relaxed);
        self.fill(&[0; WORDS]);
    }
}
