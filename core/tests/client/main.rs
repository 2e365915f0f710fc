//! The client arena (design/arena.md `.req.own`, `.req.exact`, `.req.part`, `.req.bare`).
#![cfg(not(tripoint_loom))]

mod array;
mod limits;
mod reports;
mod sharing;

use core::mem::MaybeUninit;

use tripoint_core::internal::{AtomicU32, Ordering};
use tripoint_core::{Block, ClientArena, ClientArenaOptions, Event, EventHook, PoolId};
use tripoint_oracle::all_are;

fn memory(size: usize) -> Box<[MaybeUninit<u8>]> {
    Box::new_uninit_slice(size)
}

fn with_grain(grain: usize) -> ClientArenaOptions<'static> {
    ClientArenaOptions { grain: Some(grain), ..ClientArenaOptions::default() }
}

/// Marks every byte of a block.
fn mark(block: Block, value: u8) {
    // SAFETY: the test holds the block, which is valid for writes.
    unsafe { block.base().write_bytes(value, block.size()) };
}

/// Asserts that every byte of a marked block still has its mark.
fn verify(block: Block, value: u8) {
    // SAFETY: the test holds the block, and `mark` initialised it.
    let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
    assert!(all_are(bytes, value), "{block:?} was written to, and not by its owner");
}

/// A byte that is different for each pool.
fn mark_of(pool: PoolId) -> u8 {
    pool.get().to_le_bytes()[0]
}

#[derive(Default)]
struct CountEvents(AtomicU32);

impl EventHook for CountEvents {
    fn event(&self, event: Event) {
        self.0.fetch_add(u32::from(event == Event::Shrink { size: 1 }), Ordering::Relaxed);
    }
}

#[test]
fn joined_tracts_know_their_base() {
    let mut memory = memory(16 << 10);
    let arena = ClientArena::create(&mut memory, with_grain(1024)).unwrap();
    tripoint_oracle::joined_tracts_know_their_base(&arena);
}
