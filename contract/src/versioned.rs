//! Words that one thread writes as one, and any thread reads as one: no lock, no
//! waiting on either side (design/contract.md `.alarm`).

use tripoint_core::primitive::{AtomicUsize, Ordering, fence};

use crate::atomics::{const_fn, zeros};

/// So many words, and how often they were written. Nothing was before the first time.
#[derive(Debug)]
pub struct Versioned<const WORDS: usize> {
    /// Twice the number of writes; one more while one is under way.
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

    /// Writes the words. The writer's.
    pub fn write(&self, words: &[usize; WORDS]) {
        let version = self.begin();
        self.fill(words);
        self.end(version);
    }

    /// First step of a write: readers turn away.
    pub fn begin(&self) -> usize {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Whoever sees one of the new words sees that a write began.
        fence(Ordering::Release);
        version
    }

    /// Second step: the words.
    pub fn fill(&self, words: &[usize; WORDS]) {
        for (to, &word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Third step: readers may come.
    pub fn end(&self, version: usize) {
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The words, and which write they are of. `None` before the first write and while
    /// one is under way: whoever comes again finds it.
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

    /// The words as they are. The writer's.
    #[must_use]
    pub fn own(&self) -> [usize; WORDS] {
        core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed))
    }

    /// Forgets all writes, and has written every page. Before anybody reads or writes.
    pub fn reset(&self) {
        self.version.store(0, Ordering::Relaxed);
        self.fill(&[0; WORDS]);
    }
}
