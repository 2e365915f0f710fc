//! A ring is one thread's at a time: to complete changes it (design/packets.md `.holder`).

use tripoint_packets::PacketRing;

fn misuse(ring: &PacketRing<2048>) {
    let _ = ring.complete(0, 0);
}

fn main() {}
