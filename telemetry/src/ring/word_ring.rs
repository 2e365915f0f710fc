//! A ring of words: one thread writes, any number of readers copy, and neither side waits
//! ([design/telemetry.md `.ring.protocol`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::convert::Infallible;

use tripoint_core::internal::{AtomicU64, Ordering, fence};

use crate::format::{RING_HEAD_WORDS, RingWord};
use crate::ring::copy::{Copied, RingWords, copy};

/// The words of one ring, its head included, in memory that may be shared with readers that are
/// not trusted, and with writers that are.
#[derive(Clone, Copy, Debug)]
pub struct WordRing<'w> {
    head: &'w [AtomicU64; RING_HEAD_WORDS],
    words: &'w [AtomicU64],
}

/// The head of no ring.
#[cfg(all(feature = "std", not(tripoint_loom)))]
static NO_HEAD: [AtomicU64; RING_HEAD_WORDS] = [const { AtomicU64::new(0) }; RING_HEAD_WORDS];

impl<'w> WordRing<'w> {
    /// A ring that keeps nothing, for a thread that has none.
    #[cfg(all(feature = "std", not(tripoint_loom)))]
    pub(crate) const fn none() -> Self {
        Self { head: &NO_HEAD, words: &[] }
    }

    /// A ring over these words: a head, and a number of words that is a power of two. `None` for any other number.
    #[must_use]
    pub fn new(ring: &'w [AtomicU64]) -> Option<Self> {
        let (head, words) = ring.split_first_chunk()?;
        words.len().is_power_of_two().then_some(Self { head, words })
    }

    /// A word of the head.
    #[inline]
    pub fn word(&self, word: RingWord) -> &'w AtomicU64 {
        &self.head[word as usize]
    }

    /// The words of the thread's name.
    pub fn name(&self) -> &'w [AtomicU64] {
        &self.head[RingWord::Name as usize..]
    }

    /// The number of words that the ring keeps.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.words.len() as u64
    }

    /// Takes a ring that threads share for one record, if no other thread has it.
    #[must_use]
    pub fn enter_shared(&self) -> bool {
        self.word(RingWord::Busy).swap(1, Ordering::Acquire) == 0
    }

    /// Returns the ring after [`enter_shared`](Self::enter_shared).
    #[inline]
    pub fn leave_shared(&self) {
        self.word(RingWord::Busy).store(0, Ordering::Release);
    }

    /// The position after the last word written. Only the writer calls this.
    #[inline]
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.word(RingWord::Tail).load(Ordering::Relaxed)
    }

    /// First step of a write: from here on readers know that words up to `end` may change, which overwrites
    /// the words that are one lap older. Only the writer calls this and the other steps.
    #[inline]
    pub fn announce(&self, end: u64) {
        self.word(RingWord::Intent).store(end, Ordering::Relaxed);
        // A reader that sees one of the new words also sees that it was announced.
        fence(Ordering::Release);
    }

    /// The places of `words` words from a position on; none if they are not in one piece.
    #[inline]
    pub fn places(&self, position: u64, words: usize) -> &'w [AtomicU64] {
        let first = position as usize & self.words.len().wrapping_sub(1);
        self.words.get(first..first + words).unwrap_or_default()
    }

    /// Second step: writes words that were announced.
    #[inline]
    pub fn put(&self, position: u64, words: &[u64]) {
        for (place, &word) in self.places(position, words.len()).iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Third step: shows the words up to `end` to readers.
    #[inline]
    pub fn publish(&self, end: u64) {
        self.word(RingWord::Tail).store(end, Ordering::Release);
    }

    /// Copies words from a position on: [`copy()`].
    #[must_use]
    pub fn copy(&self, from: u64, to: &mut [u64]) -> Copied {
        let Ok(copied) = copy(self, from, to);
        copied
    }
}

impl RingWords for WordRing<'_> {
    type Error = Infallible;

    fn capacity(&self) -> u64 {
        self.words.len() as u64
    }

    fn head(&self, word: RingWord) -> Result<u64, Infallible> {
        Ok(self.word(word).load(Ordering::Relaxed))
    }

    fn read(&self, first: u64, to: &mut [u64]) -> Result<(), Infallible> {
        for (to, word) in to.iter_mut().zip(&self.words[first as usize..]) {
            *to = word.load(Ordering::Relaxed);
        }
        Ok(())
    }
}
