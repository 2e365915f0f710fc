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
pub struct Filler<B> {
    empty: Consumer<B>,
    full: Producer<B>,
}

/// The end that takes messages out of them.
pub struct Taker<B> {
    full: Consumer<B>,
    empty: Producer<B>,
}

/// Two queues, with room for all blocks, so that sending never waits; all blocks are empty.
pub fn round<B>(make: impl Fn() -> B) -> (Filler<B>, Taker<B>) {
    let (mut to_reader, empty) = RingBuffer::new(BLOCKS);
    let (to_hot, full) = RingBuffer::new(BLOCKS);
    for _ in 0..BLOCKS {
        send(&mut to_reader, make());
    }
    (Filler { empty, full: to_hot }, Taker { full, empty: to_reader })
}

/// A receiver that is gone does not get it.
fn send<B>(to: &mut Producer<B>, block: B) {
    match to.push(block) {
        Ok(()) => {}
        Err(PushError::Full(block)) => drop(block),
    }
}

impl Filler<Block> {
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

impl<B> Filler<B> {
    /// An empty block, without sleeping; `None` if there is no taker.
    pub fn take(&mut self) -> Option<B> {
        take(&mut self.empty)
    }

    /// Sends a full block.
    pub fn send(&mut self, block: B) {
        send(&mut self.full, block);
    }

    /// Whether there is no taker any more.
    pub fn is_abandoned(&self) -> bool {
        self.full.is_abandoned()
    }
}

/// The next of a queue, without sleeping; `None` when it is empty, and its other end is gone.
pub fn take<B>(from: &mut Consumer<B>) -> Option<B> {
    let mut spins = 0;
    loop {
        // Asked first: what was sent before the end is still there.
        let is_over = from.is_abandoned();
        match from.pop() {
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

impl<B> Taker<B> {
    /// Two takers in a row: what the first gives back comes to the second, and from there to where it is filled.
    pub fn in_a_row(self) -> (Self, Self) {
        let (to_second, full) = RingBuffer::new(BLOCKS);
        (Self { full: self.full, empty: to_second }, Self { full, empty: self.empty })
    }

    /// The next block, which a thread may sleep for; `None` when there are no more.
    pub fn wait(&mut self) -> Option<B> {
        loop {
            // Asked first: what was sent before the end is still there.
            let is_over = self.full.is_abandoned();
            match self.full.pop() {
                Ok(block) => return Some(block),
                Err(_) if is_over => return None,
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// The next block, without sleeping; `None` when there are no more.
    pub fn take(&mut self) -> Option<B> {
        take(&mut self.full)
    }

    /// Sends a block back.
    pub fn give_back(&mut self, block: B) {
        send(&mut self.empty, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_round_by_two_takers() {
        let (mut filler, taker) = round(|| 0);
        let (mut first, mut second) = taker.in_a_row();
        for number in 1..=3 * BLOCKS {
            assert!(filler.take().is_some());
            filler.send(number);
            let block = first.take().unwrap();
            first.give_back(block);
            assert_eq!(second.wait(), Some(number));
            second.give_back(number);
        }
        drop(first);
        assert_eq!(second.wait(), None);
        assert!(filler.is_abandoned());
    }
}
