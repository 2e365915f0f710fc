//! Choices drawn from a fuzzer's bytes.

use core::alloc::Layout;

/// The bytes not used yet. Every draw takes some; none is left at the end.
#[derive(Debug)]
pub(crate) struct Choices<'d>(&'d [u8]);

impl<'d> Choices<'d> {
    pub(crate) const fn new(data: &'d [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(crate) fn word(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(usize::from_le_bytes(*first))
    }

    /// A number below `limit`, which is not zero and at most 65536.
    pub(crate) fn below(&mut self, limit: usize) -> Option<usize> {
        Some((usize::from(self.byte()?) << 8 | usize::from(self.byte()?)) % limit)
    }

    /// A layout below `size_limit` bytes, mostly small, aligned to at most
    /// 2 to the power of `align_log_max`.
    pub(crate) fn layout(&mut self, size_limit: usize, align_log_max: u32) -> Option<Layout> {
        let shape = self.byte()?;
        let limit = if shape & 0x80 == 0 { size_limit.min(128) } else { size_limit };
        let align = 1 << (u32::from(shape & 0x7f) % (align_log_max + 1));
        Layout::from_size_align(self.below(limit)?, align).ok()
    }
}
