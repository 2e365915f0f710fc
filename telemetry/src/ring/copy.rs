//! The reader's side of a ring: the same steps wherever its words are
//! ([design/telemetry.md `.ring.protocol`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::{Ordering, fence};

use crate::format::RingWord;

/// Where the words of one ring are: in memory, or in a file that another process writes to.
pub trait RingWords {
    /// Why words cannot be read.
    type Error;

    /// The number of words that the ring keeps, without its head: a power of two.
    fn capacity(&self) -> u64;

    /// Reads a word of the head, as by a relaxed load.
    ///
    /// # Errors
    /// If the word cannot be read.
    fn head(&self, word: RingWord) -> Result<u64, Self::Error>;

    /// Reads words from the number `first` on, none of which is beyond the ring's end. Each is read as by
    /// a relaxed load.
    ///
    /// # Errors
    /// If one of them cannot be read.
    fn read(&self, first: u64, to: &mut [u64]) -> Result<(), Self::Error>;
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The number of words that were copied.
    pub words: usize,
    /// The position from which on the words are as they were written. It is greater than the position
    /// asked for if the writer has lapped the reader; then older words are of no use.
    pub good_from: u64,
    /// The position up to which the writer had written.
    pub tail: u64,
}

/// Copies words from a position on, as many as were written and fit. Any thread of any process may call
/// this, whatever the words of the ring are.
///
/// Words from [`Copied::good_from`] on are as they were written, if the writer keeps to the
/// protocol. They lie at the end of those copied: the word at position `p` is
/// `to[(p - from) as usize]`.
///
/// # Errors
/// If a word cannot be read.
pub fn copy<W: RingWords + ?Sized>(ring: &W, from: u64, to: &mut [u64]) -> Result<Copied, W::Error> {
    let tail = ring.head(RingWord::Tail)?;
    // From here on this thread sees what was written before the tail.
    fence(Ordering::Acquire);
    let capacity = ring.capacity();
    let fits = capacity.min(to.len() as u64);
    let words = tail.saturating_sub(from).min(fits) as usize;
    let first = from & capacity.wrapping_sub(1);
    let before_end = words.min(capacity.saturating_sub(first) as usize);
    let (before, after) = to[..words].split_at_mut(before_end);
    ring.read(first, before)?;
    if !after.is_empty() {
        ring.read(0, after)?;
    }
    // If one of the words copied is newer, this thread sees its announcement now.
    fence(Ordering::Acquire);
    let intent = ring.head(RingWord::Intent)?;
    // All words before the tail were announced, so a smaller intent cannot be trusted.
    let words = if intent < tail { 0 } else { words };
    Ok(Copied { words, good_from: intent.saturating_sub(capacity).max(from), tail })
}
