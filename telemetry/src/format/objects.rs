//! The objects that are loaded in the process, so that code addresses mean something after it has ended
//! ([design/telemetry.md `.objects`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use super::header::WORD_BYTES;

/// The words of an entry.
pub const OBJECT_WORDS: usize = 64;

/// The most objects of a file. A reader needs room for no more.
pub const MAX_OBJECTS: usize = 1_024;

/// The most bytes of a build identifier; longer ones are cut off.
pub const MAX_BUILD_ID_BYTES: usize = (ObjectWord::Path as usize - ObjectWord::BuildId as usize) * WORD_BYTES;

/// The most bytes of a path; longer ones are cut off.
pub const MAX_PATH_BYTES: usize = (OBJECT_WORDS - ObjectWord::Path as usize - 1) * WORD_BYTES;

/// The words of the entry of an object. An entry never changes once it is live. If two have the
/// same addresses, the later one was loaded after the earlier one was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ObjectWord {
    /// See [`EntryState`](super::EntryState).
    State = 0,
    /// What the loader added to the addresses that the object's file has.
    Base,
    /// The first address of its first segment.
    Start,
    /// The address after its last segment.
    End,
    /// The bytes of its build identifier; zero if it has none.
    BuildIdBytes,
    /// The build identifier, filled up with zeros.
    BuildId,
    /// The path from which it was loaded, a text of at most [`MAX_PATH_BYTES`].
    Path = 10,
}
