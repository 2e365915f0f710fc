//! A flip takes objects back.

use tripoint_ap::Buffer;
use tripoint_core::SymmetricFence;

fn misuse(buffer: &Buffer) {
    let _ = buffer.flip(SymmetricFence);
}

fn main() {}
