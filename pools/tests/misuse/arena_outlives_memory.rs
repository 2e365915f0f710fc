//! A client arena lives no longer than its memory.

use core::mem::MaybeUninit;
use tripoint_core::{Arena, ClientArena, ClientArenaOptions};

fn misuse(mut memory: Vec<MaybeUninit<u8>>) -> usize {
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    drop(memory);
    arena.grain()
}

fn main() {}
