//! Packets, caches and rings borrow their pool, which returns its memory to the arena.

use tripoint_core::Arena;
use tripoint_packets::PacketPool;

fn misuse<A: Arena>(pool: PacketPool<A, 2048>) {
    let (packet, cache, ring) = (pool.take(), pool.cache(), pool.ring());
    drop(pool);
    drop((packet, cache, ring));
}

fn main() {}
