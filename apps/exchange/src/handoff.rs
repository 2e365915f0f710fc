//! Blocks on their way from the thread that reads to the hot thread, and back (design/exchange.md `.run.threads`).

use core::time::Duration;

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::input::{Block, Source};

/// Blocks that go round.
const BLOCKS: usize = 8;

/// A hot thread looks this often before it lets another thread run.
const SPINS: u32 = 1_000;

/// How long the reader sleeps if no block is free.
const PAUSE: Duration = Duration::from_micros(100);

/// The end that fills blocks.
pub struct Filler {
    empty: Consumer<Block>,
    full: Producer<Block>,
}

/// The end that takes messages out of them.
pub struct Taker {
    full: Consumer<Block>,
    empty: Producer<Block>,
}

/// Two queues, with room for all blocks, so that sending never waits; all blocks are empty.
pub fn round() -> (Filler, Taker) {
    let (mut to_reader, empty) = RingBuffer::new(BLOCKS);
    let (to_hot, full) = RingBuffer::new(BLOCKS);
    for _ in 0..BLOCKS {
        send(&mut to_reader, Block::touched());
    }
    (Filler { empty, full: to_hot }, Taker { full, empty: to_reader })
}

/// A receiver that is gone does not get it.
fn send(to: &mut Producer<Block>, block: Block) {
    match to.push(block) {
        Ok(()) => {}
        Err(PushError::Full(block)) => drop(block),
    }
}

impl Filler {
    /// Sends all of a source, as long as there is a taker.
    ///
    /// # Errors
    /// If the source cannot be read on.
    pub fn send_all(mut self, mut source: Source) -> Result<(), String> {
        loop {
            match self.empty.pop() {
                Ok(mut block) => {
                    if !source.fill(&mut block)? {
                        return Ok(());
                    }
                    send(&mut self.full, block);
                }
                Err(_) if self.empty.is_abandoned() => return Ok(()),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

impl Taker {
    /// The next block, without sleeping; `None` when there are no more.
    pub fn take(&mut self) -> Option<Block> {
        let mut spins = 0;
        loop {
            // Asked first: what was sent before the end is still there.
            let is_over = self.full.is_abandoned();
            match self.full.pop() {
                Ok(block) => return Some(block),
                Err(_) if is_over => return None,
                Err(_) if spins < SPINS => {
                    spins += 1;
                    core::hint::spin_loop();
                }
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    /// Sends a block back.
    pub fn give_back(&mut self, block: Block) {
        send(&mut self.empty, block);
    }
}
