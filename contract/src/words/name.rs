//! The name of a thread, kept in words that any thread may read.

use core::fmt;

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::words::atomics::{const_fn, zeros};

const WORD: usize = size_of::<usize>();

/// The most bytes a name keeps; the rest is cut off.
pub const NAME_SIZE: usize = 32;

/// The name of a thread, of at most [`NAME_SIZE`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; NAME_SIZE],
    size: usize,
}

impl Name {
    /// The name, cut off at [`NAME_SIZE`] bytes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut size = name.len().min(NAME_SIZE);
        while !name.is_char_boundary(size) {
            size -= 1;
        }
        let mut bytes = [0; NAME_SIZE];
        bytes[..size].copy_from_slice(&name.as_bytes()[..size]);
        Self { bytes, size }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.size]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A name with control characters is written escaped: it must neither break a line nor command a
/// terminal. Other names are as they are.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.as_str();
        if name.contains(char::is_control) { write!(f, "{}", name.escape_debug()) } else { f.pad(name) }
    }
}

/// A place for a name, written before its thread is present.
#[derive(Debug)]
pub(crate) struct NameCell {
    words: [AtomicUsize; NAME_SIZE / WORD],
    size: AtomicUsize,
}

impl NameCell {
    /// Where text and size are, for debuggers.
    #[cfg(not(tripoint_loom))]
    pub(crate) const OFFSETS: [usize; 2] =
        [core::mem::offset_of!(Self, words), core::mem::offset_of!(Self, size)];

    const_fn! {
        pub(crate) fn new() -> Self {
            Self { words: zeros(), size: AtomicUsize::new(0) }
        }
    }

    pub(crate) fn set(&self, name: &str) {
        let name = Name::new(name);
        for (word, bytes) in self.words.iter().zip(name.bytes.as_chunks::<WORD>().0) {
            word.store(usize::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.size.store(name.size, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Name {
        let mut bytes = [0; NAME_SIZE];
        for (bytes, word) in bytes.as_chunks_mut::<WORD>().0.iter_mut().zip(&self.words) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Name { bytes, size: self.size.load(Ordering::Relaxed) }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_and_cut_between_characters() {
        let cell = NameCell::new();
        for (given, kept) in [
            ("hot", "hot"),
            ("", ""),
            ("a-name-of-exactly-thirty-two-by!", "a-name-of-exactly-thirty-two-by!"),
            ("a-name-of-more-than-thirty-one-\u{e9}", "a-name-of-more-than-thirty-one-"),
        ] {
            cell.set(given);
            assert_eq!(cell.get().as_str(), kept);
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        use std::string::ToString;

        for (given, written) in [
            ("two\nlines", "two\\nlines"),
            ("\u{1b}[31mred\r", "\\u{1b}[31mred\\r"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("Ann's \"\u{e9}\" \\ 1", "Ann's \"\u{e9}\" \\ 1"),
        ] {
            assert_eq!(Name::new(given).to_string(), written);
            assert_eq!(Name::new(given).as_str(), given);
        }
        assert_eq!(std::format!("{:>4}|{:<4}|", Name::new("a"), Name::new("b")), "   a|b   |");
    }
}
