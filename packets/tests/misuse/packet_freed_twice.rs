//! A packet is given back once (design/packets.md `.req.ways`).

use tripoint_packets::{PacketBox, PacketCache};

fn misuse<'p>(cache: &mut PacketCache<'p, 2048>, packet: PacketBox<'p, 2048>) {
    cache.give(packet);
    drop(packet);
}

fn main() {}
