//! A block says that there is memory.

use core::ptr::NonNull;
use tripoint_core::Block;

fn misuse(base: NonNull<u8>) -> Block {
    Block::new(base, 4096)
}

fn main() {}
