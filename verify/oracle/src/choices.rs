//! Choices drawn from bytes: a fuzzer's, or a property test's.

/// The bytes not used yet. Every draw takes some of them; at the end none is
/// left.
#[derive(Clone, Debug)]
pub struct Choices<'d>(&'d [u8]);

impl<'d> Choices<'d> {
    /// Choices from all of `data`.
    #[must_use]
    pub const fn new(data: &'d [u8]) -> Self {
        Self(data)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next eight bytes as a number, or as many of its low bits as a word has.
    pub fn word(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first) as usize)
    }

    /// A number below `limit`, which is not zero and at most 65536: from one
    /// byte if that is enough, otherwise from two.
    pub fn below(&mut self, limit: usize) -> Option<usize> {
        let low = usize::from(self.byte()?);
        let high = if limit > 256 { usize::from(self.byte()?) } else { 0 };
        Some((high << 8 | low) % limit)
    }

    /// A number that chooses among what there is.
    pub fn which(&mut self) -> Option<usize> {
        self.byte().map(usize::from)
    }
}
