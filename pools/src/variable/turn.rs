//! Which bin is next (design/land.md `.bins`). Kept apart from pointers, so that laws can be proved of it
//! (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

/// The bins, and so the granules of the largest blocks that they take.
pub(super) const BINS: usize = 64;

const _: () = assert!(BINS == u64::BITS as usize, "a word has a bit for each bin");

/// The first bin that has blocks, from the one whose turn it is on and around; any bin if none has.
pub(super) const fn next_bin(occupied: u64, turn: u32) -> u32 {
    let ahead = occupied.rotate_right(turn).trailing_zeros();
    // Below 64 in both cases.
    (turn + ahead) % BINS as u32
}
