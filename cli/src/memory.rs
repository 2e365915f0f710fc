//! Memory of another process: of one that has ended, in its core file, or of one that is stopped.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `bytes` | numbers in the byte order of another process |
//! | `layout` | words that have names |

mod bytes;
mod layout;

use object::Endianness;

pub(crate) use self::bytes::number;
pub(crate) use self::layout::of_words;

/// How many bytes are looked through at a time.
const CHUNK: usize = 1 << 20;

/// Addresses in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// A thread, as it was when memory was read.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) stack_pointer: u64,
    pub(crate) registers: Vec<u64>,
}

/// A processor whose registers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processor {
    X86,
    Arm,
}

impl Thread {
    /// The thread with these registers, in the order in which the system notes them; `None` if there are too few.
    pub(crate) fn new(processor: Processor, registers: Vec<u64>) -> Option<Self> {
        let stack_pointer = match processor {
            Processor::X86 => 19,
            Processor::Arm => 31,
        };
        registers.get(stack_pointer).copied().map(|stack_pointer| Self { stack_pointer, registers })
    }
}

/// Memory that is read by its addresses in the process that has it.
pub(crate) trait Memory {
    /// The bytes of a word.
    fn word(&self) -> usize;

    fn endian(&self) -> Endianness;

    /// Memory at an address, up to where it is not known any more; the number of bytes that were read.
    fn read_some(&self, address: u64, bytes: &mut [u8]) -> usize;

    /// The memory in which statics are.
    fn statics(&self) -> Vec<Extent>;

    /// The threads that were there, if their registers are known.
    fn threads(&self) -> Vec<Thread>;

    /// Memory at an address; `None` if not all of it is known.
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let (mut bytes, mut read) = (Vec::new(), 0);
        while read < length {
            // A length that makes no sense takes no more memory than there is to read.
            bytes.resize(length.min(read + CHUNK), 0);
            // The rest may be in the next part.
            match self.read_some(address.checked_add(read as u64)?, &mut bytes[read..]) {
                0 => return None,
                more => read += more,
            }
        }
        Some(bytes)
    }

    /// Words at an address.
    fn words(&self, address: u64, count: usize) -> Option<Vec<u64>> {
        let bytes = self.read(address, count.checked_mul(self.word())?)?;
        Some(bytes.chunks_exact(self.word()).map(|word| number(word, self.endian())).collect())
    }

    /// The word that lies `offset` bytes behind an address.
    fn word_at(&self, address: u64, offset: u64) -> Option<u64> {
        self.words(address.checked_add(offset)?, 1)?.first().copied()
    }

    /// Where statics begin with a magic.
    fn magics(&self, magic: &[u8]) -> Vec<u64> {
        let mut found = Vec::new();
        let mut bytes = vec![0; CHUNK];
        for part in self.statics() {
            // A part that is damaged may go on behind the last address.
            let (mut at, size) = (0, part.size.min(u64::MAX - part.address));
            while at < size {
                let wanted = usize::try_from(size - at).map_or(CHUNK, |left| left.min(CHUNK));
                let read = self.read_some(part.address + at, &mut bytes[..wanted]);
                // A static of words begins at one.
                let places = (0..read.saturating_sub(magic.len() - 1)).step_by(self.word());
                let here = places.filter(|place| bytes[*place..read].starts_with(magic));
                found.extend(here.map(|place| part.address + at + place as u64));
                if read < CHUNK {
                    break;
                }
                at += (CHUNK - magic.len()) as u64;
            }
        }
        found
    }
}
