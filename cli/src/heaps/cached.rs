//! Memory that is read in blocks, because objects are small and each read is a call of the system.

use core::cell::RefCell;

use object::Endianness;

use crate::memory::{Extent, Memory, Thread};

/// The bytes of a block: a power of two.
const BLOCK: u64 = 16 << 10;

/// How many blocks are kept.
const BLOCKS: usize = 1 << 10;

/// A block, as far as it could be read.
#[derive(Clone, Default)]
struct Block {
    address: u64,
    bytes: Vec<u8>,
}

/// Memory of which the last blocks are kept that were read.
pub(crate) struct Cached<M> {
    memory: M,
    blocks: RefCell<Vec<Block>>,
}

impl<M: Memory> Cached<M> {
    pub(crate) fn new(memory: M) -> Self {
        Self { memory, blocks: RefCell::new(vec![Block::default(); BLOCKS]) }
    }

    /// What is read in blocks.
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }
}

impl<M: Memory> Memory for Cached<M> {
    fn word(&self) -> usize {
        self.memory.word()
    }

    fn endian(&self) -> Endianness {
        self.memory.endian()
    }

    fn statics(&self) -> Vec<Extent> {
        self.memory.statics()
    }

    fn threads(&self) -> Vec<Thread> {
        self.memory.threads()
    }

    fn read_some(&self, address: u64, bytes: &mut [u8]) -> usize {
        if bytes.len() as u64 >= BLOCK {
            return self.memory.read_some(address, bytes);
        }
        let (first, at) = (address & !(BLOCK - 1), (address & (BLOCK - 1)) as usize);
        let mut blocks = self.blocks.borrow_mut();
        let block = &mut blocks[(first / BLOCK) as usize % BLOCKS];
        if block.address != first || block.bytes.is_empty() {
            block.bytes.resize(BLOCK as usize, 0);
            let read = self.memory.read_some(first, &mut block.bytes);
            block.bytes.truncate(read);
            block.address = first;
        }
        match block.bytes.get(at..).filter(|known| !known.is_empty()) {
            Some(known) => {
                let length = known.len().min(bytes.len());
                bytes[..length].copy_from_slice(&known[..length]);
                length
            }
            // A part of memory may begin within the block.
            None => self.memory.read_some(address, bytes),
        }
    }
}
