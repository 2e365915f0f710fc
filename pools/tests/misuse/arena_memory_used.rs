//! A client arena has its memory to itself.

use core::mem::MaybeUninit;
use tripoint_core::{Arena, ClientArena, ClientArenaOptions};

fn misuse(memory: &mut [MaybeUninit<u8>]) -> usize {
    let arena = ClientArena::create(memory, ClientArenaOptions::default()).unwrap();
    memory[0].write(7);
    arena.grain()
}

fn main() {}
