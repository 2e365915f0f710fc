//! Rings of records: two for each thread
//! ([design/telemetry.md `.ring`, `.block`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use super::record::HEAD_WORDS;

/// The words of a ring before its first block.
pub const RING_HEAD_WORDS: usize = 16;

/// The words of a block, which has 4 KiB. No record crosses the end of a block, so that a reader that was
/// lapped finds the beginning of a record again. A ring has a power of two of blocks, at least two.
// In models blocks have room for two records or three.
pub const BLOCK_WORDS: usize = if cfg!(any(tripoint_loom, tripoint_shuttle)) { 16 } else { 512 };

/// The words of the record of the clock, with which every block begins.
pub const CLOCK_RECORD_WORDS: usize = HEAD_WORDS + 1;

/// The words of a ring before its first block.
///
/// A position counts words since the ring was made; the word at a position is the one with the
/// number `position % words of all blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum RingWord {
    /// The position up to which the writer may be writing. The words of one lap before it may
    /// be overwritten already.
    Intent = 0,
    /// The position up to which records are complete.
    Tail,
    /// The number of events ever written.
    Serial,
    /// The number of events dropped because the ring was in use, by the code that a signal
    /// interrupted, or by another of the threads that share it.
    Dropped,
    /// Not zero while a record is being written to the ring that threads share.
    Busy,
    /// A [`RingState`].
    State,
    /// The number of the thread that has the ring, even if it ended without returning it; zero for none. The upper
    /// half is not zero while another thread finds out whether it has ended.
    Thread,
    /// How often a thread claimed the ring.
    Claims,
    /// The name of the thread that has the ring, or had it last: at most [`MAX_THREAD_NAME_BYTES`],
    /// filled up with zeros.
    Name,
}

/// The most bytes of a thread's name; longer names are cut off.
pub const MAX_THREAD_NAME_BYTES: usize = 32;

/// Which threads write to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum RingState {
    /// No thread.
    Free = 0,
    /// One thread.
    Claimed = 1,
    /// All threads that found no free ring. It is the last ring of a file.
    Shared = 2,
}

/// The words from a position to the end of its block.
#[inline]
#[must_use]
pub const fn words_left_in_block(position: u64) -> usize {
    BLOCK_WORDS - (position % BLOCK_WORDS as u64) as usize
}
