//! Sources of the words of a file: a file that is read, never mapped, or bytes in memory
//! ([design/telemetry.md `.reader.source`](crate::design::telemetry)).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::vec::Vec;

use crate::format::{PAGE_WORDS, WORD_BYTES};

/// Words that another process may change while they are read.
pub trait Words {
    /// The number of bytes that there are now.
    ///
    /// # Errors
    /// If the system refuses to say.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads words from the byte `offset` on, all that fit in `to`.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] if there are too few words; otherwise the error of the system.
    fn read(&self, offset: u64, to: &mut [u64]) -> io::Result<()>;
}

/// Reads one word.
pub(super) fn word(words: &dyn Words, offset: u64) -> io::Result<u64> {
    let mut word = [0];
    words.read(offset, &mut word)?;
    Ok(word[0])
}

/// A file, or a part of one.
#[derive(Debug)]
pub(super) struct FileWords {
    pub(super) file: File,
    /// The byte at which the words begin.
    pub(super) base: u64,
    /// The number of bytes from there; none for all that the file has.
    pub(super) bytes: Option<u64>,
}

impl Words for FileWords {
    fn bytes(&self) -> io::Result<u64> {
        let rest = self.file.metadata()?.len().saturating_sub(self.base);
        Ok(self.bytes.map_or(rest, |bytes| bytes.min(rest)))
    }

    fn read(&self, offset: u64, to: &mut [u64]) -> io::Result<()> {
        let end = offset.saturating_add(size_of_val(to) as u64);
        if self.bytes.is_some_and(|bytes| end > bytes) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut at = self.base.checked_add(offset).ok_or(ErrorKind::UnexpectedEof)?;
        let mut bytes = [0_u8; PAGE_WORDS * WORD_BYTES];
        for to in to.chunks_mut(PAGE_WORDS) {
            let bytes = &mut bytes[..size_of_val(to)];
            self.file.read_exact_at(bytes, at)?;
            at += bytes.len() as u64;
            unpack(bytes, to);
        }
        Ok(())
    }
}

/// Bytes in memory.
impl Words for Vec<u8> {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read(&self, offset: u64, to: &mut [u64]) -> io::Result<()> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let bytes = rest.and_then(|rest| rest.get(..size_of_val(to))).ok_or(ErrorKind::UnexpectedEof)?;
        unpack(bytes, to);
        Ok(())
    }
}

fn unpack(bytes: &[u8], to: &mut [u64]) {
    for (to, bytes) in to.iter_mut().zip(bytes.as_chunks().0) {
        *to = u64::from_ne_bytes(*bytes);
    }
}
