//! What the system notes in a core file: the process, the signal that ended it, and which files were mapped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use object::elf::{NT_FILE, NT_PRSTATUS, NoteType};
use object::{Endian as _, Endianness};

use crate::mapped::Mapped;
use crate::memory::number;

#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// The thread that a signal came to, and the signal. None if a debugger wrote the file of a process that went on.
    pub(crate) ended: Option<(u64, u64)>,
    pub(crate) mapped: Vec<Mapped>,
    /// The registers of each thread.
    pub(super) registers: Vec<Vec<u64>>,
}

impl Notes {
    /// Takes a note. One that makes no sense is left out.
    pub(super) fn add(&mut self, kind: NoteType, bytes: &[u8], word: usize, endian: Endianness) {
        match kind {
            // There is one for each thread; debuggers need not begin with that of the signal.
            NT_PRSTATUS => {
                self.ended = self.ended.or_else(|| ended(bytes, word, endian));
                self.registers.extend(registers(bytes, word, endian));
            }
            NT_FILE => self.mapped = mapped(bytes, word, endian).unwrap_or_default(),
            _ => {}
        }
    }
}

/// The thread and its signal, if it had one.
fn ended(bytes: &[u8], word: usize, endian: Endianness) -> Option<(u64, u64)> {
    // Three numbers of `siginfo`; the signal, of two bytes, filled up; two sets of signals, of a word each.
    let (signal, thread) = (bytes.get(12..14)?, bytes.get(16 + 2 * word..20 + 2 * word)?);
    let signal = endian.read_u16(signal.try_into().ok()?);
    (signal != 0).then(|| (number(thread, endian), signal.into()))
}

/// The registers of a thread of a process of 64 bits: they are behind the times that it took, and a number is behind them.
fn registers(bytes: &[u8], word: usize, endian: Endianness) -> Option<Vec<u64>> {
    let words = bytes.get(112..bytes.len().checked_sub(8)?).filter(|_| word == 8)?;
    Some(words.chunks_exact(word).map(|word| number(word, endian)).collect())
}

/// The files that were mapped: how many, the bytes of a page, start, end and page of each, and then the paths, each of
/// which ends with a zero.
fn mapped(bytes: &[u8], word: usize, endian: Endianness) -> Option<Vec<Mapped>> {
    let numbers = bytes.chunks_exact(word).map(|word| number(word, endian));
    let mut head = numbers.clone().take(2);
    let (count, page) = (usize::try_from(head.next()?).ok()?, head.next()?);
    let after = count.checked_mul(3)?.checked_add(2)?.checked_mul(word)?;
    let mut paths = bytes.get(after..)?.split(|byte| *byte == 0);
    let rows: Vec<u64> = numbers.skip(2).take(3 * count).collect();
    let row = |row: &[u64]| {
        let [start, end, pages] = *row else { return None };
        let path = OsStr::from_bytes(paths.next()?).into();
        Some(Mapped { path, start, end, offset: pages.checked_mul(page)? })
    };
    rows.chunks_exact(3).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note of two files, of a process of 32 bits.
    fn note() -> Vec<u8> {
        let numbers = [2_u32, 4096, 0x1000, 0x3000, 0, 0x7000, 0x8000, 5];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(b"/bin/a\0/memfd:tripoint (deleted)\0");
        bytes
    }

    #[test]
    fn mapped_files_are_read_and_damaged_notes_are_left_out() {
        let files = mapped(&note(), 4, Endianness::Little).unwrap();
        assert_eq!(files[0], Mapped { path: "/bin/a".into(), start: 0x1000, end: 0x3000, offset: 0 });
        assert_eq!((files[1].start, files[1].offset), (0x7000, 5 * 4096));
        for length in 0..note().len() - 30 {
            let cut = mapped(&note()[..length], 4, Endianness::Little);
            assert!(cut.is_none_or(|files| files.len() == 2), "{length}");
        }
        let mut many = note();
        many[..4].fill(0xff);
        assert_eq!(mapped(&many, 4, Endianness::Little), None);
    }

    #[test]
    fn the_thread_and_its_signal_are_at_their_places() {
        for word in [4, 8] {
            let mut bytes = vec![0; 20 + 2 * word];
            bytes[16 + 2 * word] = 77;
            assert_eq!(ended(&bytes, word, Endianness::Little), None);
            bytes[12] = 6;
            assert_eq!(ended(&bytes, word, Endianness::Little), Some((77, 6)));
            assert_eq!(ended(&bytes[1..], word, Endianness::Little), None);
        }
    }
}
