//! For a pipeline, a logger, a market-data handler: one thread allocates messages, another
//! frees them, and neither takes a lock for it.
//!
//! ```text
//!   gateway thread                                  worker thread
//!   MfsCache ----- message, in a PoolBox ---------> Returns
//!      ^                                               |
//!      +----- 64 units at a time, one exchange --------+
//! ```
//!
//! A cache belongs to one thread. It takes the units that other threads returned as soon as
//! it has none left itself.
//!
//! ```sh
//! cargo run --example 04_cache_and_returns
//! ```

use std::sync::mpsc::sync_channel;
use std::thread;

use tripoint::{Arena, ArenaVm, ArenaVmOptions, Error, Mfs, MfsOptions, PoolBox, PoolClass, UnitOf};

/// Messages in flight at most.
const QUEUE: usize = 128;
const WARM: u64 = 10_000;
const MESSAGES: u64 = 1_000_000;

/// A message as it came from the network.
struct Message {
    number: u64,
    length: usize,
    bytes: [u8; 48],
}

impl Message {
    fn receive(number: u64) -> Self {
        let mut bytes = [0; 48];
        let length = 8 + number as usize % 40;
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Self { number, length, bytes }
    }

    /// A checksum that the worker spends its time on.
    fn checksum(&self) -> u64 {
        self.bytes[..self.length].iter().fold(self.number, |sum, &byte| sum.rotate_left(5) ^ u64::from(byte))
    }
}

fn main() -> Result<(), Error> {
    let arena = ArenaVm::create(ArenaVmOptions::default())?;
    let messages = Mfs::create(&arena, UnitOf::<Message>::new(), MfsOptions::default())?;
    // This channel allocates when a thread first waits in it. A loop under the contract takes
    // a ring instead, or waits before it is armed.
    let (sender, receiver) = sync_channel::<PoolBox<'_, Message, _>>(QUEUE);

    let worker_sum = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut returns = messages.returns(); // this thread's way back to the pool
            let mut sum = 0_u64;
            for message in receiver {
                sum ^= message.checksum();
                returns.free_box(message); // drops it, and keeps its unit until there are 64
            }
            sum // the units that `returns` still keeps go back when it is dropped
        });

        let cache = messages.cache(); // this thread's
        for number in 0..MESSAGES {
            if number == WARM {
                arena.freeze(); // a request for more memory would fail from here on
            }
            // A box that may be freed on any thread. `boxed` makes one that must be freed here.
            let message = cache.pool_boxed(Message::receive(number))?;
            sender.send(message).expect("the worker runs until the channel is closed");
        }
        drop(sender);
        let sum = worker.join().expect("the worker does not panic");
        Ok::<_, Error>(sum)
    })?;

    // Cache and returns are dropped: every unit is back in the pool.
    let sizes = messages.sizes();
    println!("{MESSAGES} messages through {} KiB, checksum {worker_sum:x}", sizes.total >> 10);
    assert_eq!(worker_sum, (0..MESSAGES).fold(0, |sum, number| sum ^ Message::receive(number).checksum()));
    assert_eq!(arena.counts().growth_refused.get(), 0, "a warm pool needs no more memory");
    assert_eq!(sizes.free / messages.unit_size(), sizes.total / messages.unit_size(), "nothing leaked");
    assert!(sizes.total < 256 << 10, "units were used again");
    Ok(())
}
