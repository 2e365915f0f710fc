//! The page of switches, the only thing that other processes may change
//! ([design/telemetry.md `.switches`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use super::header::{PAGE_WORDS, WORD_BYTES};

/// The first eight bytes of the page.
pub const SWITCHES_MAGIC: [u8; WORD_BYTES] = *b"trpntsw1";

/// The words of the page.
pub const SWITCHES_WORDS: usize = PAGE_WORDS;

/// The words of the page. The first four are for readers; the process never reads them. It checks
/// the others each time it uses them. Each says what a value that is not allowed counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum SwitchWord {
    /// [`SWITCHES_MAGIC`].
    Magic = 0,
    /// [`BYTE_ORDER`](super::BYTE_ORDER).
    ByteOrder,
    /// The process whose switches these are.
    Process,
    /// A number that the header of the data has as well ([`HeaderWord::Identity`](super::HeaderWord::Identity)), and no
    /// other. A reader compares the two, because files with a path may be replaced at any time.
    Identity,
    /// Events that are written: bit `n` for the kind with number `n`. At first all bits are set. Any
    /// value is allowed.
    Events = 8,
    /// Whether addresses are left out: 0 or 1. Any other value counts as 1, and so does any value if the program
    /// leaves them out for good ([`HeaderFlags::WITHOUT_ADDRESSES`](super::HeaderFlags::WITHOUT_ADDRESSES)).
    WithoutAddresses,
    /// Whether to sample: 0 for no, 1 for yes. Any other value leaves sampling to the program, which
    /// follows this word and the next when it calls `Switches::apply_to`.
    Sampling,
    /// The mean of sampling in bytes, from 1 to 2^32 - 1. Any other value leaves it to the program.
    Mean,
    /// Whether every reserve and commit is written, at points whose `PointLogger` asks
    /// `Switches::point_log`: 0 or 1. Any other value counts as 0.
    PointLog,
    /// Whether samplers walk the stack of each object that they sample: 0 or 1. Any other value leaves that to
    /// the program, as for sampling.
    Sites,
}
