//! Choices drawn from bytes: a fuzzer's, or a property test's.

/// The bytes not used yet. Every draw takes some; none is left at the end.
#[derive(Clone, Debug)]
pub struct Choices<'d>(&'d [u8]);

impl<'d> Choices<'d> {
    /// All of `data` is left.
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

    /// A number below `limit`, which is not zero and at most 65536: of one byte
    /// where that is enough, or else of two.
    pub fn below(&mut self, limit: usize) -> Option<usize> {
        let low = usize::from(self.byte()?);
        let high = if limit > 256 { usize::from(self.byte()?) } else { 0 };
        Some((high << 8 | low) % limit)
    }

    /// A number to choose by, among whatever there is.
    pub fn which(&mut self) -> Option<usize> {
        self.byte().map(usize::from)
    }
}
