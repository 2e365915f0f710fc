//! Blocks of lines, handed from thread to thread without locks or copies.
//!
//! Blocks go round: the reader fills one, the hot thread keeps the book from it,
//! the reference reads it again, and the reader has it back
//! (design/order-book.md `.req.stream`, `.handoff.ring`).

use core::time::Duration;

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::tops::{self, Top};

/// The bytes of a block, and so of the longest line: 1 MiB.
pub const BLOCK_SIZE: usize = 1 << 20;

/// Blocks that go round.
const BLOCKS: usize = 8;

/// A hot thread looks at an empty queue this often before it lets another thread run.
const SPINS: u32 = 1_000;

/// How long another thread sleeps if a queue is empty.
const PAUSE: Duration = Duration::from_micros(100);

/// Whole lines of the input.
pub struct Block {
    bytes: Box<[u8]>,
    used: usize,
    /// Which of the inputs the lines are from.
    pub input: usize,
    /// What the hot thread noted of them.
    pub tops: Vec<Top>,
}

impl Block {
    fn new() -> Self {
        let mut bytes = vec![0; BLOCK_SIZE].into_boxed_slice();
        // Zeroed memory may not be there before it is written.
        core::hint::black_box(&mut bytes).fill(b'\n');
        Self { bytes, used: 0, input: 0, tops: Vec::new() }
    }

    /// A block without memory, for rehearsals.
    pub fn empty() -> Self {
        Self { bytes: Box::default(), used: 0, input: 0, tops: Vec::new() }
    }

    /// All of the memory, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Keeps the first `size` bytes as contents.
    pub fn truncate(&mut self, size: usize) {
        self.used = size.min(BLOCK_SIZE);
    }

    /// Makes these bytes the contents, lines of that input. There have to be at most as many as a block has.
    pub fn set(&mut self, contents: &[u8], input: usize) {
        self.bytes[..contents.len()].copy_from_slice(contents);
        (self.used, self.input) = (contents.len(), input);
    }

    /// Keeps only what comes from `begin` on.
    pub fn keep_from(&mut self, begin: usize) {
        self.bytes.copy_within(begin..self.used, 0);
        self.used -= begin;
    }

    /// Keeps only the first `count` lines.
    pub fn keep_lines(&mut self, count: u64) {
        self.used = (0..count)
            .zip(self.contents().split_inclusive(|&byte| byte == b'\n'))
            .map(|(_, line)| line.len())
            .sum();
    }

    /// Returns the bytes of all lines so far.
    pub fn contents(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// The lines, without their line ends.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.contents()
            .split_inclusive(|&byte| byte == b'\n')
            .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
    }
}

/// The sending end of a queue of blocks.
pub struct Sender(Producer<Block>);

/// The receiving end of a queue of blocks.
pub struct Receiver(Consumer<Block>);

/// The three queues of the round, and the blocks in the last.
pub struct Round {
    pub to_hot: (Sender, Receiver),
    pub to_reference: (Sender, Receiver),
    pub to_reader: (Sender, Receiver),
}

impl Round {
    /// Empty queues, and every block on its way to the reader.
    pub fn new() -> Self {
        Self::with_tops(0)
    }

    /// The same, and each block has room for that many tops.
    pub fn with_tops(tops: usize) -> Self {
        let mut round = Self { to_hot: queue(), to_reference: queue(), to_reader: queue() };
        for _ in 0..BLOCKS {
            let mut block = Block::new();
            block.tops = tops::room(tops);
            round.to_reader.0.send(block);
        }
        round
    }
}

/// A queue with room for every block of the round.
pub fn queue() -> (Sender, Receiver) {
    // Every queue has room for every block: sending never waits.
    let (producer, consumer) = RingBuffer::new(BLOCKS);
    (Sender(producer), Receiver(consumer))
}

impl Sender {
    /// Hands a block on. A receiver that is gone does not get it.
    pub fn send(&mut self, block: Block) {
        match self.0.push(block) {
            Ok(()) => {}
            Err(PushError::Full(block)) => drop(block),
        }
    }
}

impl Receiver {
    /// Waits for the next block on a hot thread, which does not sleep; `None` once the sender is gone.
    pub fn receive_hot(&mut self) -> Option<Block> {
        let mut spins = 0;
        self.receive_by(|| {
            if spins < SPINS {
                spins += 1;
                core::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        })
    }

    /// Sleeps until the next block is there, so that the processor is for others; `None` once the sender is gone.
    pub fn receive(&mut self) -> Option<Block> {
        self.receive_by(|| std::thread::sleep(PAUSE))
    }

    fn receive_by(&mut self, mut wait: impl FnMut()) -> Option<Block> {
        loop {
            // Asked first: what was sent before the sender left is still there.
            let last = self.0.is_abandoned();
            match self.0.pop() {
                Ok(block) => return Some(block),
                Err(_) if last => return None,
                Err(_) => wait(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_arrives_before_the_end() {
        let (mut sender, mut receiver) = queue();
        let mut block = Block::new();
        block.bytes_mut()[..6].copy_from_slice(b"a\n\nbc\n");
        block.truncate(5);
        sender.send(block);
        drop(sender);
        let block = receiver.receive().unwrap();
        assert_eq!(block.lines().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc"]);
        assert!(receiver.receive().is_none());
    }
}
